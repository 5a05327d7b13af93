// The API's page: Swagger UI with the settings that the page itself carries.
const settings = JSON.parse(document.getElementById("swagger-settings").textContent);

SwaggerUIBundle({
  ...settings,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
});
