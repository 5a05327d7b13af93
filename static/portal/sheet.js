// A link marked data-sheet asks its question in a dialog over the page. Without JavaScript it is a page of its own.
const sheet = document.getElementById("sheet");
const body = document.getElementById("sheet-body");

if (sheet && window.htmx) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-sheet]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    sheet.dataset.from = link.id;
    sheet.dataset.href = link.href;
    // From the sheet itself, whose hx-sync lets only the last question come: another one would take away what is typed by then.
    window.htmx.ajax("GET", link.href, { source: body, target: body, swap: "innerHTML" }).catch(() => {}); // its events tell
  });

  // Not at the swap: htmx sets the focus once more when it settles, and would take it from where a quick hand has moved it.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target === body && body.childElementCount && !sheet.open) sheet.showModal();
  });

  // The page behind the link tells what went wrong, in full.
  const instead = (event) => {
    if (event.detail.target === body) location.href = sheet.dataset.href;
  };
  document.addEventListener("htmx:responseError", instead);
  document.addEventListener("htmx:sendError", instead);
  document.addEventListener("htmx:timeout", instead);

  sheet.addEventListener("click", (event) => {
    const isOutside = event.target === sheet;
    if (isOutside || event.target.closest("[data-close-sheet]")) {
      event.preventDefault();
      sheet.close();
    }
  });
  sheet.addEventListener("close", () => {
    // The event comes a frame after the closing; by then the next question may stand here.
    if (sheet.open) return;
    body.replaceChildren();
    // The page may have refreshed itself meanwhile: find the link again by its id.
    document.getElementById(sheet.dataset.from)?.focus();
  });
}
