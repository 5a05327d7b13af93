// A button that copies the text beside it. Where the browser keeps the clipboard to itself the text is marked instead.
import { say } from "./say.js";

const SHOWN_MILLISECONDS = 1500;

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    say("Marked. Copy it with the keyboard.");
    return;
  }
  say("Copied");
  button.dataset.done = "";
  setTimeout(() => delete button.dataset.done, SHOWN_MILLISECONDS);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
