// Loaded before the first paint, so that no page flashes in the wrong colours. Follows the system until the person
// chooses; the choice is kept in this browser.
(function () {
  "use strict";
  const key = "portal-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let choice = "system";

  try {
    choice = localStorage.getItem(key) || "system";
  } catch {
    // Storage is blocked: a choice lasts until the page is left.
  }

  function apply() {
    root.dataset.bsTheme = choice === "system" ? (system.matches ? "dark" : "light") : choice;
  }

  root.dataset.js = "";
  system.addEventListener("change", apply);
  window.portalTheme = {
    chosen: () => choice,
    choose(wanted) {
      choice = wanted;
      try {
        localStorage.setItem(key, wanted);
      } catch {
        // As above.
      }
      apply();
    },
  };
  apply();
})();
