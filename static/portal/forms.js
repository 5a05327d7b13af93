// Small helps in forms: lengths to press, addresses to fill in, and no second sending by a nervous finger.
import { say } from "./say.js";

const CALM_MILLISECONDS = 1500;

function fill(input, value) {
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

for (const group of document.querySelectorAll("[data-chips]")) {
  const input = document.getElementById(group.dataset.chips);
  // The preview brings new ones: the rule's usual length last, and what is too long can't be pressed.
  const show = () => {
    const typed = input.value.trim().toLowerCase();
    for (const chip of group.querySelectorAll("button")) chip.setAttribute("aria-pressed", String(chip.dataset.value === typed));
  };
  group.addEventListener("click", (event) => {
    const chip = event.target.closest("button");
    if (chip) fill(input, chip.dataset.value);
  });
  input.addEventListener("input", show);
  // The rule says what is usual; that is offered until somebody chooses another length.
  input.addEventListener("input", () => delete input.dataset.offered);
  document.addEventListener("htmx:configRequest", (event) => {
    if ("offered" in input.dataset && event.detail.elt.id === "preview") event.detail.parameters.duration = "";
  });
  const offer = () => {
    const usual = document.querySelector("[data-usual]")?.dataset.usual;
    if ("offered" in input.dataset && usual && input.value !== usual) {
      input.value = usual;
      // Whoever is about to type there writes over it, not behind it.
      if (document.activeElement === input) input.select();
    }
    show();
  };
  document.addEventListener("htmx:afterSettle", offer);
  offer();
}

// A rule that wants no ticket is not asked for one. Behind the last list the focus goes on to what is still to be typed, over the length,
// which the rule fills in; to a ticket that the verdict asks for, as long as nothing else is typed. On a phone that would hide the page.
const ticket = document.querySelector("[data-ticket-field]");
const verdict = document.getElementById("preview");
if (ticket && verdict) {
  const [number, reason] = [ticket.querySelector("input"), verdict.closest("form").querySelector("textarea")];
  // The last list, from the choice in it until the verdict of that choice.
  let goesOn = null;
  const show = () => {
    ticket.hidden = !verdict.querySelector("[data-ticket=asked]") && !ticket.querySelector(".is-invalid");
    ticket.querySelector("label span").textContent = verdict.querySelector("[data-ticket-needed]") ? ticket.dataset.needed : ticket.dataset.perhaps;
  };
  const goOn = () => {
    const next = [ticket.hidden ? null : number, reason].find((field) => field && !field.value);
    if (next) next.focus();
  };
  document.addEventListener("htmx:afterSwap", (event) => {
    show();
    const { target, requestConfig } = event.detail;
    // A verdict asked for before the choice may come after it, and says nothing of it.
    if (!goesOn || target !== verdict || requestConfig.parameters[goesOn.name] !== goesOn.value) return;
    goesOn = null;
    if (document.activeElement === reason && !reason.value) goOn();
  });
  document.addEventListener("combo:last", (event) => {
    const isLast = Boolean(event.target.closest(".mb-3")?.nextElementSibling?.querySelector("[data-chips]"));
    goesOn = isLast && matchMedia("(pointer: fine)").matches ? event.target.querySelector("input[name]") : null;
    if (goesOn) goOn();
  });
  show();
}

// Where every ticket of the rule begins with the same letters, its number is enough: the field completes it.
if (ticket && verdict) {
  const number = ticket.querySelector("input");
  let head = "";
  const learn = () => {
    const said = verdict.querySelector("[data-ticket]").dataset;
    // While the verdict is about the ticket, it names no rule.
    if ("ticketHead" in said || !said.ticket) head = said.ticketHead ?? "";
    number.placeholder = head && `${head}4711`;
  };
  const whole = () => (/^\d+$/.test(number.value.trim()) ? head + number.value.trim() : number.value);
  const complete = () => {
    number.value = whole();
  };
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt === verdict) event.detail.parameters.ticket_id = whole();
  });
  document.addEventListener("htmx:afterSwap", (event) => event.detail.target === verdict && learn());
  number.addEventListener("change", complete);
  // Sent from the keyboard, the field has not been left.
  number.form.addEventListener("submit", complete);
  learn();
}

// While somebody types, the last verdict is dimmed, and no new one is red: what is half typed is not wrong yet.
if (verdict) {
  let timer = 0;
  let isWithheld = false;
  const rest = () => {
    clearTimeout(timer);
    delete verdict.dataset.typing;
    if (isWithheld) window.htmx.trigger(verdict, "again");
    isWithheld = false;
  };
  const form = verdict.closest("form");
  form.addEventListener("input", (event) => {
    if (!event.target.matches("input[type=text]")) return;
    verdict.dataset.typing = "";
    clearTimeout(timer);
    timer = setTimeout(rest, CALM_MILLISECONDS);
  });
  form.addEventListener("change", rest);
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== verdict || !("typing" in verdict.dataset)) return;
    isWithheld = event.detail.serverResponse.includes('verdict stop"');
    if (isWithheld) event.detail.shouldSwap = false;
    else delete verdict.dataset.typing;
  });
  // What stood there was about something else.
  const failed = (event) => {
    if (event.detail.elt !== verdict) return;
    const [panel, told] = [verdict.querySelector(".verdict"), document.createElement("p")];
    told.className = "mb-0";
    told.textContent = "The portal does not answer now, so this is not known. Change something to ask again; the form can be sent all the same.";
    panel.className = "panel padded verdict";
    panel.replaceChildren(panel.querySelector("h2"), told);
    say(told.textContent);
  };
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, failed);
}

for (const button of document.querySelectorAll("[data-fill]")) {
  button.addEventListener("click", () => {
    fill(document.getElementById(button.dataset.fill), button.dataset.value);
    document.getElementById(button.dataset.then)?.focus();
  });
}

// From the keyboard, where Enter is a new line.
document.getElementById("request-form")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
});

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
const mayBeSent = () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  }
};
window.addEventListener("pageshow", mayBeSent);
// Stopped on its way, by the person or by a download.
window.navigation?.addEventListener("navigateerror", mayBeSent);

document.querySelector(".is-invalid, [role=alert]")?.closest("form")?.querySelector(".is-invalid")?.focus();
