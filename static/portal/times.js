// Times in the viewer's zone and time left that ticks. The server has put UTC there already, as text and as the title.
const locale = document.documentElement.lang || undefined;
const clockOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const minute = new Intl.DateTimeFormat(locale, clockOptions);
const second = new Intl.DateTimeFormat(locale, { ...clockOptions, second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

// The viewer's clock may be wrong; the server's is the one that ends access. A page that the browser kept tells of a moment that is over:
// then the newest page of this tab knows how far the clocks are apart.
const KNOWN = "portal-clock";
const stamp = document.querySelector("meta[name=portal-now]");
let { told, offset } = JSON.parse(sessionStorage.getItem(KNOWN) ?? '{"told":0,"offset":0}');
if (stamp && Date.parse(stamp.content) > told) {
  told = Date.parse(stamp.content);
  offset = told - Date.now();
  sessionStorage.setItem(KNOWN, JSON.stringify({ told, offset }));
}

export function now() {
  return Date.now() + offset;
}

// The same rule as presenting.words_for_time.
export function wordsForTime(seconds) {
  const whole = Math.max(Math.floor(seconds), 0);
  const days = Math.floor(whole / 86400);
  const hours = Math.floor(whole / 3600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  const rest = whole % 60;
  if (days) return hours ? `${days} d ${hours} h` : `${days} d`;
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  if (minutes >= 5 || (minutes && !rest)) return `${minutes} min`;
  return minutes ? `${minutes} min ${rest} s` : `${rest} s`;
}

function dayWord(at) {
  const midnight = (moment) => new Date(moment.getFullYear(), moment.getMonth(), moment.getDate());
  const today = new Date(now());
  const days = Math.round((midnight(at) - midnight(today)) / 86400000);
  if (days === 0) return "";
  if (days === 1) return "tomorrow ";
  if (days === -1) return "yesterday ";
  return `${at.getFullYear() === today.getFullYear() ? day.format(at) : dayOfYear.format(at)}, `;
}

// Where clocks go back an hour (or, on Lord Howe Island, half of one) the same time comes twice: then it is said which of the two.
const shifts = [-60, -30, 30, 60];

function offsetWord(at) {
  const behind = at.getTimezoneOffset();
  if (!shifts.some((shift) => new Date(at.getTime() + shift * 60000).getTimezoneOffset() - behind === shift)) return "";
  const [hours, minutes] = [Math.floor(Math.abs(behind) / 60), Math.abs(behind) % 60];
  return ` UTC${behind > 0 ? "−" : "+"}${hours}${minutes ? `:${minutes}` : ""}`;
}

function wordsBy(clock, at) {
  return dayWord(at) + clock.format(at) + offsetWord(at);
}

// As a line says it: the minute, and the day where it is not today.
export function wordsForMoment(at) {
  return wordsBy(minute, at);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  for (const element of document.querySelectorAll("time[data-moment]")) {
    const at = new Date(element.dateTime);
    if (element.dataset.moment === "ago") setText(element, `${wordsForTime((now() - at) / 1000)} ago`);
    else setText(element, wordsBy(element.dataset.moment === "exact" ? second : minute, at));
  }
  for (const element of document.querySelectorAll("[data-left]")) {
    setText(element, wordsForTime((Date.parse(element.dataset.left) - now()) / 1000));
  }
  for (const element of document.querySelectorAll("[data-ends-in]")) {
    element.title = `until ${wordsForMoment(new Date(now() + Number(element.dataset.endsIn) * 1000))}`;
  }
  for (const bar of document.querySelectorAll("progress[data-fuse]")) {
    const seconds = Math.max((Date.parse(bar.dataset.fuse) - now()) / 1000, 0);
    bar.value = seconds;
    bar.toggleAttribute("data-low", seconds < Number(bar.dataset.lowBelow));
  }
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const element of document.querySelectorAll("[data-zone]")) element.textContent = zone || "your time zone";
for (const input of document.querySelectorAll("[data-zone-name]")) input.value = zone || "";
// Moments to type: the server has put UTC there, and takes the zone beside them.
for (const input of document.querySelectorAll("input[data-utc]")) {
  const at = new Date(input.dataset.utc);
  if (!Number.isNaN(at.getTime())) input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}
for (const element of document.querySelectorAll("[data-not-utc]")) element.hidden = zone === "UTC";
tick();
setInterval(tick, 1000);
document.addEventListener("htmx:afterSwap", tick);
