// Words for people who can't see what changed: one polite live region for the whole page.
export function say(text) {
  const region = document.getElementById("said");
  if (region && text && region.textContent !== text) {
    region.textContent = text;
  }
}
