// A button that copies the text beside it. Where the browser keeps the clipboard to itself the text is marked instead.
import { say } from "./say.js";

const SHOWN_MILLISECONDS = 1500;

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    if (button.dataset.copyLink) return say("It is in the address bar now. Copy it there.");
    getSelection().selectAllChildren(button.previousElementSibling);
    say("Marked. Copy it with the keyboard.");
    return;
  }
  say("Copied");
  button.dataset.done = "";
  setTimeout(() => delete button.dataset.done, SHOWN_MILLISECONDS);
}

// The address of the form with what is typed in it. It becomes the page's own, so that it can be bookmarked, too.
function linkOf(button) {
  const link = new URL(button.form.action);
  for (const name of button.dataset.copyLink.split(",")) {
    const value = new FormData(button.form).get(name);
    if (value) link.searchParams.set(name, value);
  }
  history.replaceState(history.state, "", link);
  return link.href;
}

document.addEventListener("click", (event) => {
  const linking = event.target.closest("[data-copy-link]");
  if (linking) {
    linking.dataset.copy = linkOf(linking);
    copy(linking);
    return;
  }
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
