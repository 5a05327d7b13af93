// The API's page: Swagger UI with the settings that the page itself carries.
const settings = JSON.parse(document.getElementById("swagger-settings").textContent);

SwaggerUIBundle({
  ...settings,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  // Its operations are the page's main part; what stands above them it leaves without a name for screen readers.
  onComplete: () => document.querySelector(".information-container").setAttribute("role", "banner"),
});
