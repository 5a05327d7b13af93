// What the lists can do better with scripts: count the selection, select a page, go on while a page is not full, and show a failed
// fragment as a whole page.
// Everything works without.

function updateSelection(form) {
  const boxes = [...form.querySelectorAll("input[name=key]")];
  const chosen = boxes.filter((box) => box.checked).length;
  const said = form.querySelector("[data-selected]");
  if (!said) return;
  const words = chosen ? `${chosen} selected` : said.dataset.none;
  if (said.textContent !== words) said.textContent = words;
  for (const button of form.querySelectorAll("[data-bulk]")) {
    button.disabled = chosen === 0 && !("takesAll" in button.dataset && boxes.length);
    // A page that is not full goes on, so what is all is counted here.
    const none = button.dataset.none?.replace("#", boxes.length);
    button.textContent = chosen ? button.dataset.bulk.replace("#", chosen) : (none ?? button.dataset.bulk.replace(" #", ""));
  }
  const all = form.querySelector("[data-select-all]");
  all.checked = chosen > 0 && chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
}

function updateAll() {
  document.querySelectorAll("form.list-form").forEach(updateSelection);
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("form.list-form");
  if (!form) return;
  if (event.target.matches("[data-select-all]")) {
    for (const box of form.querySelectorAll("input[name=key]")) box.checked = event.target.checked;
  }
  updateSelection(form);
});

// The whole row opens what its name opens, unless something else in it was meant: a control, a text to copy, or one more row to tick.
document.addEventListener("click", (event) => {
  const row = event.target.closest("#results table.list tbody tr");
  const link = row?.querySelector(".what a");
  if (!link || event.target.closest("a, button, input, label, summary, .col-tick, .col-do")) return;
  if (!getSelection().isCollapsed || row.closest("table").querySelector("input[name=key]:checked")) return;
  const { ctrlKey, metaKey, shiftKey } = event;
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }));
});

// An answer that is an error must never leave an old table standing as if it were current.
document.addEventListener("htmx:responseError", (event) => {
  const { pathInfo, requestConfig } = event.detail;
  if (requestConfig.verb === "get") window.location.assign(pathInfo.finalRequestPath || pathInfo.requestPath);
});

// What goes on by itself and can't any more says so, and can be gone on with by hand.
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, ({ target }) => {
    const line = target.querySelector?.(":scope > .actions > [data-stopped]");
    if (!line) return;
    line.textContent = line.dataset.stopped;
    target.querySelector("button").classList.remove("no-js");
  });
}

for (const place of document.querySelectorAll(".places [aria-current=page]")) {
  place.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone the row of places scrolls sideways
}

// A list that looks again never moves under a finger: while somebody points at it, has ticked rows or stands in it with the
// keyboard, only the line above it tells that it has changed.
function isInUse(list) {
  const stands = list.contains(document.activeElement);
  return list.matches(":hover") || stands || list.querySelector("input[name=key]:checked") !== null;
}

function tellOfList(list, words) {
  const line = list?.querySelector("[data-live-line]");
  if (line) line.textContent = words(line.dataset);
}

for (const name of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => tellOfList(event.target.closest?.("[data-live-list]"), (told) => told.silent));
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const { elt, xhr, requestConfig } = event.detail;
  const isRefresh = requestConfig?.path?.includes("mark=") && elt.matches?.("[data-live-list]");
  if (!isRefresh || xhr.status !== 200 || !isInUse(elt)) return;
  event.detail.shouldSwap = false;
  tellOfList(elt, (told) => told.changed);
});

// What was added to a page of a list in order of time finds its place in it.
document.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
  if (!target?.matches("[data-by-time]")) return;
  const momentOf = (row) => row.querySelector("time").dateTime;
  target.append(...[...target.children].sort((one, other) => momentOf(one).localeCompare(momentOf(other))));
});

document.addEventListener("htmx:afterSettle", updateAll);
window.addEventListener("pageshow", updateAll); // the browser restores ticked boxes when going back
updateAll();
