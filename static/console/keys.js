// The queue without a mouse: j and k go through the rows, x selects, a approves, d denies, ? tells of the keys. And with one: Shift and a click
// select a range. Everything works without.
import { say } from "../portal/say.js";

const OFF = "portal-keys-off";
const PLACE = "portal-keys-place";
const help = document.getElementById("keys");
let last = null; // the row that was selected last, by its key: the list may have been fetched anew since

const rows = () => [...document.querySelectorAll("#results tbody tr:has(input[name=key])")];
const boxOf = (row) => row.querySelector("input[name=key]");
const here = () => document.activeElement?.closest("#results tbody tr") ?? null;

function select(row, isChecked) {
  const box = boxOf(row);
  box.checked = isChecked;
  box.dispatchEvent(new Event("change", { bubbles: true }));
}

function selectTo(row, isChecked) {
  const all = rows();
  const from = all.findIndex((one) => boxOf(one).value === last);
  const to = all.indexOf(row);
  if (from < 0) return select(row, isChecked);
  for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) select(one, isChecked);
}

document.addEventListener("click", (event) => {
  const box = event.target.closest?.("#results input[name=key]");
  if (!box) return;
  if (event.shiftKey) selectTo(box.closest("tr"), box.checked);
  last = box.value;
});

function go(step) {
  const all = rows();
  const at = all.indexOf(here());
  const row = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  if (!row) return;
  boxOf(row).focus();
  row.scrollIntoView({ block: "nearest" });
}

// The page that comes after a decision begins where it was made: at the same request if it is still there, or else at the one below.
function keepPlace(row) {
  const all = rows();
  const at = all.indexOf(row);
  sessionStorage.setItem(PLACE, JSON.stringify([row, all[at + 1], all[at - 1]].filter(Boolean).map((one) => boxOf(one).value)));
}

function takePlace() {
  const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "[]");
  const all = rows();
  if (!kept.length || !all.length) return;
  sessionStorage.removeItem(PLACE);
  const row = kept.map((key) => all.find((one) => boxOf(one).value === key)).find(Boolean);
  if (row) boxOf(row).focus();
}

function decide(name) {
  const row = here();
  const isMany = document.querySelector("#results input[name=key]:checked") !== null;
  if (isMany) document.querySelector(`#results [data-bulk][formaction$="/${name}/"]`)?.click();
  else if (row) {
    keepPlace(row);
    row.querySelector(`[id^="do-${name}-"]`)?.click();
  } else say("Go to a request first, with j or k.");
}

const acts = {
  j: () => go(1),
  k: () => go(-1),
  x: () => here() && (select(here(), !boxOf(here()).checked), (last = boxOf(here()).value)),
  X: () => here() && (selectTo(here(), true), (last = boxOf(here()).value)),
  a: () => decide("approve"),
  d: () => decide("deny"),
  Enter: () => here()?.querySelector("a")?.click(),
  "?": () => help.showModal(),
};

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

if (help) {
  takePlace();
  const on = document.getElementById("keys-on");
  on.checked = localStorage.getItem(OFF) === null;
  on.addEventListener("change", () => (on.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  document.addEventListener("click", (event) => event.target.closest?.("[data-keys-help]") && help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key !== "j" && event.key !== "k") return;
    if (!on.checked || help.open || isTyping(event.target) || !Object.hasOwn(acts, event.key)) return;
    // A link or a button has its own Enter.
    if (event.key === "Enter" && !event.target.matches("input[name=key]")) return;
    event.preventDefault();
    acts[event.key]();
  });
}
