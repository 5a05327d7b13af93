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

// What decides at one press stays where it is while somebody points at it; it is looked at again in a while.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.matches("[data-still]:hover")) detail.shouldSwap = false;
});

// htmx gives the focus back to what has an id. What has none is found again by where it leads, or by what it sends and where to.
const deedOf = (one) => [one.localName, one.getAttribute("href"), one.form?.getAttribute("action"), one.name, one.value].join(" ");
let left = null;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const one = document.activeElement;
  left = null;
  if (one.id || !detail.target.contains(one)) return;
  const deed = deedOf(one);
  const alike = () => [...document.getElementsByTagName(one.localName)].filter((other) => deedOf(other) === deed);
  left = { one, alike, place: alike().indexOf(one) };
});
document.addEventListener("htmx:afterSwap", () => {
  if (!left || left.one.isConnected || document.activeElement !== document.body) return;
  left.alike()[left.place]?.focus({ preventScroll: true });
  left = null;
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
