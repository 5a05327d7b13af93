// When the session is over, the page has to go and sign in. What is typed on it goes ahead, to be kept (identity/drafts.py).
function isChanged(control) {
  if (control.type === "hidden") return "kept" in control.dataset;
  if (control.type === "checkbox" || control.type === "radio") return control.checked !== control.defaultChecked;
  if (control.options) return control.selectedIndex !== Math.max([...control.options].findIndex((option) => option.defaultSelected), 0);
  return "defaultValue" in control && control.value !== control.defaultValue;
}

function isTyped(form) {
  const isKept = form.method === "get" || form.elements.namedItem("typed_by");
  return isKept && [...form.elements].some(isChanged);
}

// True when a form took the page along. What is searched for is in the address anyway, so such a form is just sent.
function sendTyped() {
  const forms = [...document.forms].filter(isTyped);
  const form = forms.find((one) => one.contains(document.activeElement)) ?? forms.find((one) => one.method === "post") ?? forms[0];
  if (!form) return false;
  if (form.method === "post") {
    const keep = document.createElement("input");
    Object.assign(keep, { type: "hidden", name: "keep", value: "yes" });
    form.append(keep);
  }
  // Past the listeners: this is no sending by the person.
  HTMLFormElement.prototype.submit.call(form);
  return true;
}

// Whether the answer's headers send the page elsewhere, and what is typed has gone ahead. ``header`` reads one of them.
export function goesAhead(header) {
  return header("Portal-Signed-Out") !== null && sendTyped();
}
