// Elements are made by hand and texts are set as texts: whatever an owner or a person wrote is never
// read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, of which `text` is its content and `on*` are listeners. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a part of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = String(value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A labelled field of a form; the hint is read with it. */
export function field(label, input, hint = "") {
  input.id ||= `field-${(field.count = (field.count ?? 0) + 1)}`;
  const said = hint ? el("p", { class: "hint", id: `${input.id}-hint`, text: hint }) : null;
  if (said) input.setAttribute("aria-describedby", said.id);
  return el("div", { class: "field" }, el("label", { for: input.id, text: label }), input, said);
}

export function ticked(label, input) {
  input.id ||= `field-${(field.count = (field.count ?? 0) + 1)}`;
  return el("div", { class: "field check" }, input, el("label", { for: input.id, text: label }));
}

export function select(options, chosen) {
  const made = el("select");
  for (const [value, text] of Object.entries(options)) {
    made.append(el("option", { value, text, selected: value === chosen }));
  }
  return made;
}

/** The head of a table's row: a text of people, which must not turn the table around. */
export function rowHead(text) {
  return el("th", { scope: "row" }, el("bdi", { text }));
}

export function facts(pairs) {
  const rows = Object.entries(pairs).map(([name, value]) =>
    el(
      "div",
      { class: (value instanceof Node ? value.textContent : String(value)).length > 40 ? "wide" : null },
      el("dt", { text: name }),
      el("dd", { dir: "auto" }, value instanceof Node ? value : String(value)),
    ),
  );
  return el("dl", { class: "facts" }, rows);
}

/** Ask before something that can't be undone; resolves to whether it was confirmed. */
export function confirmed(title, text, action) {
  return new Promise((resolve) => {
    const yes = el("button", { type: "button", text: action });
    const no = el("button", { type: "button", class: "plain", text: "Cancel" });
    const heading = el("h2", { id: "confirm-title", text: title });
    const asked = el("dialog", { "aria-labelledby": "confirm-title" });
    asked.append(heading, el("p", { text }), el("div", { class: "buttons" }, yes, no));
    const end = (answer) => () => (asked.close(), asked.remove(), resolve(answer));
    yes.addEventListener("click", end(true));
    no.addEventListener("click", end(false));
    asked.addEventListener("cancel", end(false));
    document.body.append(asked);
    asked.showModal();
    no.focus();
  });
}

/** Hand a file to the person, from memory. */
export function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function copyButton(text, label = "Copy") {
  const made = el("button", { type: "button", class: "plain", text: label });
  made.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      complain("The browser did not allow copying. Select the text and copy it by hand.");
    }
  });
  return made;
}

let toastTimer = 0;

export function complain(text) {
  toast("alert", text, 12_000);
}

export function say(text) {
  toast("note", text, 4_000);
}

function toast(id, text, time) {
  for (const each of ["alert", "note"]) document.getElementById(each).hidden = true;
  const place = document.getElementById(id);
  place.textContent = text;
  place.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (place.hidden = true), time);
}

export const whole = (number) => Number(number).toLocaleString("en");

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
