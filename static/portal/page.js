// What every page does. Each module looks for its own parts; a page without them costs nothing.
import "./places.js";
import "./theme-button.js";
import "./times.js";
import "./forms.js";
import "./leaving.js";
import "./live.js";
import "./sheet.js";
import "./combobox.js";
import "./copy.js";
import "./pool-chart.js";
