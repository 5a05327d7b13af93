// Parts that refresh themselves: quiet while nobody looks, honest when they can't, and told aloud when they change.
import { say } from "./say.js";

const root = document.documentElement;
const COUNT = /^\(\d+\+?\) /;

// How many requests wait for whoever looks at another tab.
function tell() {
  const count = document.querySelector(".places .tally")?.textContent.trim() ?? "";
  document.title = (/^\d/.test(count) ? `(${count}) ` : "") + document.title.replace(COUNT, "");
}
tell();

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.closest("[data-background]")) event.preventDefault();
});

document.addEventListener("htmx:afterSwap", (event) => {
  const told = event.target.querySelector?.("[data-said]") ?? event.target.closest?.("[data-said]");
  const live = document.querySelector("#live[data-title]");
  if (live && event.target.contains(live)) {
    // What was said at the top told of the state before.
    if (document.title.replace(COUNT, "") !== live.dataset.title) document.querySelector(".messages")?.remove();
    document.title = live.dataset.title;
  }
  tell();
  if (told) say(told.dataset.said);
});

const failed = (event) => {
  if (event.target.closest?.("[data-background]")) root.dataset.stale = "";
};
document.addEventListener("htmx:sendError", failed);
document.addEventListener("htmx:responseError", failed);
document.addEventListener("htmx:timeout", failed);
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && event.target.closest?.("[data-background]")) delete root.dataset.stale;
});
