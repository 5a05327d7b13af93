// Where the places don't fit, they scroll: the one where we are is in sight. Only their own row moves, never the page.
for (const here of document.querySelectorAll(".places [aria-current]")) {
  const row = here.closest(".places");
  const [place, frame] = [here.getBoundingClientRect(), row.getBoundingClientRect()];
  row.scrollLeft += place.left + place.width / 2 - (frame.left + frame.width / 2);
}
