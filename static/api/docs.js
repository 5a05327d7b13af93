// The API's page: Swagger UI with the settings that the page itself carries.
// Swagger UI has dark colours of its own, under this name.
const root = document.documentElement;
const colour = () => root.classList.toggle("dark-mode", root.dataset.bsTheme === "dark");
new MutationObserver(colour).observe(root, { attributeFilter: ["data-bs-theme"] });
colour();

const settings = JSON.parse(document.getElementById("swagger-settings").textContent);

SwaggerUIBundle({
  ...settings,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  // Its operations are the page's main part; what stands above them it leaves without a name for screen readers.
  onComplete: () => document.querySelector(".information-container").setAttribute("role", "banner"),
});
