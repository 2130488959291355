// Elements from values: texts only ever become text, never markup.

/** An element; children are elements or texts. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Words of the owner: isolated, in their own direction. */
export function said(text, tag = "bdi") {
  return el(tag, { dir: "auto", class: "said" }, text);
}

export function button(text, action, { primary = false, id = null } = {}) {
  const made = el("button", { type: "button", class: primary ? "primary" : "quiet", id }, text);
  made.addEventListener("click", action);
  return made;
}

export function paragraph(...children) {
  return el("p", {}, ...children);
}

export function card(...children) {
  return el("section", { class: "card" }, ...children);
}

export function folded(summary, ...children) {
  return el("details", {}, el("summary", {}, summary), ...children);
}
