// A page on its way out takes no answer any more. What a refresh is told after a sign-out is "sign in again": htmx would go
// there, in place of where the person was going, and the reason that stands there would never be read.
import { goesAhead } from "./typed.js";

const ANSWERED_MILLISECONDS = 15_000; // htmx waits no longer (htmx-config): a page that is still here after that stays

let isLeaving = false;
let coming;

function leave() {
  isLeaving = true;
  clearTimeout(coming);
  coming = setTimeout(stay, ANSWERED_MILLISECONDS);
}

function stay() {
  isLeaving = false;
}

// The way out begins a moment after the form is submitted. On the window: whoever keeps the form back has done so by then.
window.addEventListener("submit", (event) => {
  if (!event.defaultPrevented && event.target.method !== "dialog") leave();
});
window.addEventListener("beforeunload", leave);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) stay();
});

// The first answer that sends the page elsewhere counts.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const header = (name) => event.detail.xhr.getResponseHeader(name);
  if (isLeaving) event.preventDefault();
  else if (header("HX-Redirect")) {
    if (goesAhead(header)) event.preventDefault();
    leave();
  }
});

// The same for what is asked without htmx: true when this answer sends the page elsewhere.
export function follow(headers) {
  const header = (name) => headers.get(name);
  if (!isLeaving && header("HX-Redirect")) {
    if (!goesAhead(header)) location.href = header("HX-Redirect");
    leave();
  }
  return isLeaving;
}
