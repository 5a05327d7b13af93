// Loaded before the first paint, so that no page flashes in the wrong colours. Follows the system until the person
// chooses; the choice is kept in this browser.
(function () {
  "use strict";
  const key = "portal-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function chosen() {
    try {
      return localStorage.getItem(key) || "system";
    } catch {
      return "system"; // storage is blocked: follow the system
    }
  }

  function apply() {
    const choice = chosen();
    root.dataset.bsTheme = choice === "system" ? (system.matches ? "dark" : "light") : choice;
    root.dataset.themeChoice = choice;
    document.dispatchEvent(new CustomEvent("portal:theme", { detail: choice }));
  }

  root.dataset.js = "";
  system.addEventListener("change", apply);
  window.portalTheme = {
    chosen,
    choose(choice) {
      try {
        localStorage.setItem(key, choice);
      } catch {
        root.dataset.themeChoice = choice; // lasts until the page is left
      }
      apply();
    },
  };
  apply();
})();
