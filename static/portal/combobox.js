// A text field with answers from the server (ARIA combobox with a list). What is typed counts even if nothing is chosen.
import { follow } from "./leaving.js";
import { say } from "./say.js";

const WAIT = 120;

class Combo {
  constructor(box) {
    this.box = box;
    this.input = box.querySelector("input");
    this.list = box.querySelector(".combo-list");
    this.at = -1;
    this.timer = 0;
    this.asking = null;
    // Whether an answer is still to come, and how often Enter was pressed before it: once for this list, again for those that follow.
    this.isAwaited = false;
    this.enters = 0;
    // Whether the list was opened by the field before, so that a single choice needs no key.
    this.isNext = false;
    const id = this.list.querySelector("[role=listbox]").id;
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id })) {
      this.input.setAttribute(name, value);
    }
    this.input.addEventListener("input", () => this.askSoon());
    this.input.addEventListener("click", () => this.isOpen || this.ask());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", (event) => this.list.contains(event.relatedTarget) || this.close());
    this.list.addEventListener("focusout", (event) => this.box.contains(event.relatedTarget) || this.close());
    // Pressing the list must not take the focus from the field, or the list would close before the click counts.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.choose(event.target.closest("[role=option]")));
    this.list.addEventListener("keydown", (event) => this.keyInList(event));
    box.combo = this;
  }

  get isOpen() {
    return !this.list.hidden;
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  // Opens what can't be asked for; the arrows lead there, and Tab to the next field.
  get others() {
    return this.list.querySelector("summary");
  }

  askSoon() {
    clearTimeout(this.timer);
    // What belongs to fewer letters is not meant any more: an answer that is still to come, or what the arrows went to.
    this.asking?.abort();
    this.isAwaited = true;
    this.enters = 0;
    this.isNext = false;
    this.options[this.at]?.setAttribute("aria-selected", "false");
    this.at = -1;
    this.input.removeAttribute("aria-activedescendant");
    this.timer = setTimeout(() => this.ask(), WAIT);
  }

  async ask() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = new AbortController();
    this.isAwaited = true;
    const url = new URL(this.box.dataset.combo, location.href);
    // What may be chosen depends on what was chosen beside it.
    for (const other of this.input.form?.querySelectorAll("[data-combo] input, [name=subject]") ?? []) url.searchParams.set(other.name, other.value);
    url.searchParams.set(this.box.dataset.comboName, this.input.value.trim());
    try {
      const answer = await fetch(url, { headers: { "HX-Request": "true" }, signal: this.asking.signal });
      if (!follow(answer.headers)) this.show(answer.ok ? await answer.text() : null);
    } catch (error) {
      if (error.name !== "AbortError") this.show(null);
    }
  }

  show(html) {
    if (html === null) {
      const told = document.createElement("div");
      told.className = "rest";
      told.textContent = "The search does not answer now. What you type here counts all the same.";
      this.list.replaceChildren(told);
    } else {
      this.list.innerHTML = html;
    }
    this.at = -1;
    this.isAwaited = false;
    this.input.removeAttribute("aria-activedescendant");
    const isOnly = this.isNext && !this.input.value && this.options.length === 1;
    const enters = this.options.length ? this.enters : 0;
    this.enters = 0;
    this.isNext = false;
    if (isOnly || enters) {
      this.choose(this.meant(), true, Math.max(enters - 1, 0));
      return;
    }
    if (document.activeElement !== this.input) return;
    this.list.hidden = false;
    const meant = this.options.indexOf(this.meant());
    if (meant >= 0) this.move(meant + 1);
    this.input.setAttribute("aria-expanded", String(this.options.length > 0));
    const count = this.options.length;
    say(count ? `${count} ${count === 1 ? "choice" : "choices"}, ${this.isWhole ? "the arrow keys lead to them" : "Enter takes the first"}` : this.list.querySelector(".rest")?.textContent.trim());
  }

  close() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.isAwaited = false;
    this.enters = 0;
    this.list.hidden = true;
    this.at = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  move(step) {
    const options = this.options;
    if (!options.length) return;
    options[this.at]?.setAttribute("aria-selected", "false");
    this.at = this.at < 0 && step < 0 ? options.length - 1 : (this.at + step + options.length) % options.length;
    const option = options[this.at];
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", option.id);
  }

  // A whole address that is typed is meant itself, also where another one begins so; and any text, where others than people are named, too.
  get isWhole() {
    const { comboWhole } = this.box.dataset;
    return comboWhole === "always" || (comboWhole !== undefined && this.input.value.includes("@"));
  }

  // What Enter takes: the option that the arrows went to, the one that is typed in full, or the first.
  meant() {
    const options = this.options;
    const typed = this.input.value.trim().toLowerCase();
    return options[this.at] ?? options.find((option) => option.dataset.value.toLowerCase() === typed) ?? (this.isWhole ? undefined : options[0]);
  }

  choose(option, goesOn = true, enters = 0) {
    if (!option) return;
    if (option.dataset.url) {
      location.assign(option.dataset.url);
      return;
    }
    this.input.value = option.dataset.value;
    this.close();
    this.input.dispatchEvent(new Event("change", { bubbles: true }));
    if (goesOn) this.goOn(enters);
  }

  // To the next field of the form that is to be typed, if that is a list too: it opens by itself. Behind the last the form goes on.
  goOn(enters) {
    const boxes = [...(this.input.form?.querySelectorAll("[data-combo]") ?? [])];
    const next = boxes[boxes.indexOf(this.box) + 1]?.combo;
    if (!next) this.box.dispatchEvent(new CustomEvent("combo:last", { bubbles: true }));
    if (!next || next.input.value) return;
    next.input.focus();
    next.isNext = true;
    next.enters = enters;
    next.ask();
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const isBehindLast = event.key === "ArrowDown" && this.isOpen && this.at === this.options.length - 1;
      if (isBehindLast && this.others) this.others.focus();
      else if (this.isOpen) this.move(event.key === "ArrowDown" ? 1 : -1);
      else this.ask();
    } else if (event.key === "Enter" && this.isAwaited && !this.isWhole) {
      event.preventDefault();
      if (!event.repeat) this.enters += 1;
    } else if (event.key === "Enter" && this.isOpen && this.meant()) {
      event.preventDefault();
      this.choose(this.meant());
    } else if (event.key === "Tab" && this.isOpen) {
      // What was typed may be among those that can't be asked for, or in a list that is still to come: then it stays as it is.
      if (!event.shiftKey && this.input.value.trim() && !this.others && !this.isAwaited) this.choose(this.meant(), false);
      this.close();
    } else if (event.key === "Escape" && this.isOpen) {
      event.preventDefault();
      this.close();
    }
  }

  keyInList(event) {
    if (event.key !== "Escape" && !(event.key === "ArrowUp" && event.target === this.others)) return;
    event.preventDefault();
    this.input.focus();
    if (event.key === "Escape") this.close();
  }
}

const begin = (root) => {
  for (const box of root.querySelectorAll("[data-combo]")) box.combo ?? new Combo(box);
};
begin(document);
// In a sheet, too.
document.addEventListener("htmx:load", (event) => begin(event.detail.elt));

// Where a link has filled in the field before, the list that comes next is open from the start.
const begun = document.querySelector("#request-form [data-combo] input[autofocus]")?.closest("[data-combo]").combo;
if (begun && !begun.input.value && begun.box !== document.querySelector("#request-form [data-combo]")) {
  begun.isNext = true;
  begun.ask();
}

document.addEventListener("keydown", (event) => {
  const box = document.querySelector("[data-shortcut]");
  if (!box || event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  event.preventDefault();
  box.select();
});
