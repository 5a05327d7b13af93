// A page on its way out takes no answer any more. What a refresh is told after a sign-out is "sign in again": htmx would go
// there, in place of where the person was going, and the reason that stands there would never be read.
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
  if (!event.defaultPrevented) leave();
});
window.addEventListener("beforeunload", leave);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) stay();
});

// The first answer that sends the page elsewhere counts.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (isLeaving) event.preventDefault();
  else if (event.detail.xhr.getResponseHeader("HX-Redirect")) leave();
});
