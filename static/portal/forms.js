// Small helps in forms: lengths to press, addresses to fill in, and no second sending by a nervous finger.
function fill(input, value) {
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

for (const group of document.querySelectorAll("[data-chips]")) {
  const input = document.getElementById(group.dataset.chips);
  const chips = [...group.querySelectorAll("button")];
  const show = () => {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chip.dataset.value === input.value.trim().toLowerCase()));
  };
  for (const chip of chips) chip.addEventListener("click", () => fill(input, chip.dataset.value));
  input.addEventListener("input", show);
  // The preview knows the longest length: what is longer can't be pressed.
  const limit = () => {
    const longest = Number(document.querySelector("[data-longest]")?.dataset.longest || Infinity);
    for (const chip of chips) chip.disabled = Number(chip.dataset.seconds) > longest;
  };
  // The rule says what is usual; that is offered until somebody chooses another length.
  input.addEventListener("input", () => delete input.dataset.offered);
  document.addEventListener("htmx:configRequest", (event) => {
    if ("offered" in input.dataset && event.detail.elt.id === "preview") event.detail.parameters.duration = "";
  });
  const offer = () => {
    const usual = document.querySelector("[data-usual]")?.dataset.usual;
    if ("offered" in input.dataset && usual) input.value = usual;
    show();
  };
  document.addEventListener("htmx:afterSwap", () => {
    offer();
    limit();
  });
  offer();
  limit();
}

for (const button of document.querySelectorAll("[data-fill]")) {
  button.addEventListener("click", () => {
    fill(document.getElementById(button.dataset.fill), button.dataset.value);
    document.getElementById(button.dataset.then)?.focus();
  });
}

// The server makes one request of a form that is sent twice; this only spares the wait. Buttons come back with the page.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-once]");
  if (!form) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  event.submitter?.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

document.querySelector(".is-invalid, [role=alert]")?.closest("form")?.querySelector(".is-invalid")?.focus();
