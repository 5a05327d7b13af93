// Pointing at the drawing of the pool shows the figures of that moment instead of those of now.
import { wordsForMoment } from "./times.js";

// As in web/pool_chart.py.
const WIDTH = 1000;
const HEIGHT = 240;
// Where nothing was counted there is nothing to tell.
const NEAR = 25;

function figures() {
  return document.querySelectorAll("[data-figure]");
}

function nearest(points, place) {
  const distance = (point) => Math.abs(point[0] - place);
  const found = points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
  return distance(found) <= NEAR ? found : null;
}

function show(chart, [place, seconds, ...counts]) {
  figures().forEach((figure, index) => {
    figure.dataset.now ??= figure.textContent;
    figure.textContent = counts[index];
  });
  chart.querySelector(".cursor").setAttribute("d", `M${place} 0V${HEIGHT}`);
  const at = chart.querySelector(".at");
  at.textContent = wordsForMoment(new Date(seconds * 1000));
  at.hidden = false;
  const drawing = chart.querySelector("svg");
  const room = drawing.clientWidth - at.offsetWidth;
  const middle = (place / WIDTH) * drawing.clientWidth - at.offsetWidth / 2;
  at.style.insetInlineStart = `${Math.min(Math.max(middle, 0), room)}px`;
}

function rest(chart) {
  for (const figure of figures()) figure.textContent = figure.dataset.now ?? figure.textContent;
  chart.querySelector(".cursor").setAttribute("d", "");
  chart.querySelector(".at").hidden = true;
}

document.addEventListener("pointermove", (event) => {
  const drawing = event.target.closest?.(".pool-chart svg");
  const chart = drawing?.closest("[data-points]") ?? document.querySelector(".pool-chart[data-points]");
  if (!chart) return;
  const box = drawing?.getBoundingClientRect();
  const point = box && nearest(JSON.parse(chart.dataset.points), ((event.clientX - box.left) / box.width) * WIDTH);
  if (point) show(chart, point);
  else if (!chart.querySelector(".at").hidden) rest(chart);
});
