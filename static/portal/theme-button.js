// The button goes round: as the system, light, dark.
const next = { system: "light", light: "dark", dark: "system" };
const words = { system: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };

for (const button of document.querySelectorAll("[data-theme-button]")) {
  const tell = () => {
    const text = words[window.portalTheme.chosen()];
    button.setAttribute("aria-label", text);
    button.title = text;
  };
  button.addEventListener("click", () => {
    window.portalTheme.choose(next[window.portalTheme.chosen()]);
    tell();
  });
  tell();
}
