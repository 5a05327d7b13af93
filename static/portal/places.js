// Where the places don't fit, they scroll: the one where we are is in sight, and the row fades where others lie beyond its edge. Only their
// own row moves, never the page.
function fade(row) {
  row.toggleAttribute("data-before", row.scrollLeft > 1);
  row.toggleAttribute("data-after", row.scrollLeft + row.clientWidth < row.scrollWidth - 1);
}

function settle(within) {
  for (const row of within.querySelectorAll(".places")) {
    const here = row.querySelector("[aria-current]");
    if (here) {
      const [place, frame] = [here.getBoundingClientRect(), row.getBoundingClientRect()];
      row.scrollLeft += place.left + place.width / 2 - (frame.left + frame.width / 2);
    }
    fade(row);
  }
}

settle(document);
document.addEventListener("htmx:load", (event) => settle(event.detail.elt));
addEventListener("resize", () => document.querySelectorAll(".places").forEach(fade));
document.addEventListener("scroll", ({ target }) => target.matches?.(".places") && fade(target), { capture: true, passive: true });
