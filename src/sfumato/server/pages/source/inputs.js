// Questions as form fields: each gives the code of what the person chose, or says what is missing.

import { el, said } from "./dom.js";
import { Refusal } from "./text.js";

const MOST_RADIOS = 8;
const MOST_OPTIONS = 2_000;
const UNSAID = "I’d rather not say";
const UNLISTED = "something else";

/** A question: `node`; `read()` gives a code or a Refusal; `fail(text)` shows what is wrong. */
export function field(column, question, place, known) {
  const listed = ["category", "ordinal", "boolean"].includes(column.kind);
  if (column.size <= MOST_RADIOS && listed) return radios(column, question, place, known);
  if (column.size <= MOST_OPTIONS && listed) return options(column, question, place, known);
  return typed(column, question, place, known);
}

function radios(column, question, place, known) {
  const name = `question-${place}`;
  const inputs = choices(column).map(([code, text]) => {
    const id = `${name}-${code}`;
    const input = el("input", { type: "radio", name, id, value: code, checked: code === known });
    return [input, el("label", { for: id }, text)];
  });
  const error = complaint(name);
  const node = el(
    "fieldset",
    { "aria-describedby": error.id, dir: directionOf(question) },
    el("legend", {}, said(question)),
    ...inputs.map((pair) => el("div", { class: "choice" }, ...pair)),
    error,
  );
  const read = () => {
    const chosen = inputs.find(([input]) => input.checked);
    if (!chosen) throw new Refusal("Please choose one of these.");
    return Number(chosen[0].value);
  };
  return finished({ node, read, error, target: inputs[0][0] });
}

function options(column, question, place, known) {
  const id = `question-${place}`;
  const error = complaint(id);
  const empty = el("option", { value: "" }, "Choose …");
  const listed = choices(column).map(([code, text]) =>
    el("option", { value: code, selected: code === known, dir: "auto" }, text.textContent ?? text),
  );
  const select = el("select", { id, "aria-describedby": error.id }, empty, ...listed);
  const read = () => {
    if (select.value === "") throw new Refusal("Please choose one of these.");
    return Number(select.value);
  };
  const label = el("label", { for: id }, said(question));
  const node = el("div", { class: "field", dir: directionOf(question) }, label, select, error);
  return finished({ node, read, error, target: select });
}

function typed(column, question, place, known) {
  const id = `question-${place}`;
  const error = complaint(id);
  const own = known === null ? "" : column.label(known);
  const kept = own && ` Kept from the first round: ${own}. Leave this empty to use it.`;
  const hint = el("p", { class: "hint", id: `${id}-hint`, dir: "auto" }, hintOf(column) + kept);
  const described = `${hint.id} ${error.id}`;
  const type = { date: "date", datetime: "datetime-local" }[column.kind] ?? "text";
  const mode = { integer: "numeric", number: "decimal" }[column.kind] ?? null;
  const input = el("input", {
    ...{ id, type, inputmode: mode, "aria-describedby": described },
    ...{ autocomplete: "off", spellcheck: "false", dir: "auto" },
  });
  const label = el("label", { for: id }, said(question));
  const node = el("div", { class: "field", dir: directionOf(question) }, label, input, hint);
  const unsaid = column.missingCode === null ? null : unsaidBox(id, input);
  if (unsaid) node.append(unsaid.node);
  node.append(error);
  const read = () => {
    if (unsaid?.box.checked) return column.missingCode;
    return known !== null && input.value === "" ? known : codeOf(column, input.value);
  };
  return finished({ node, read, error, target: input });
}

function unsaidBox(id, input) {
  const box = el("input", { type: "checkbox", id: `${id}-unsaid` });
  box.addEventListener("change", () => {
    input.disabled = box.checked;
  });
  const label = el("label", { for: box.id, dir: "auto" }, UNSAID);
  return { box, node: el("div", { class: "choice" }, box, label) };
}

function finished({ node, read, error, target }) {
  const fail = (text) => {
    error.textContent = text;
    node.classList.toggle("wrong", text !== "");
    if (text) target.setAttribute("aria-invalid", "true");
    else target.removeAttribute("aria-invalid");
  };
  return { node, read, fail, focus: () => target.focus() };
}

function choices(column) {
  return Array.from({ length: column.size }, (_, code) => {
    if (code === column.missingCode) return [code, UNSAID];
    return [code, code === column.otherCode ? UNLISTED : said(column.label(code))];
  });
}

function codeOf(column, text) {
  if (text.trim() === "") throw new Refusal("Please answer this.");
  if (column.kind === "date") return column.codeOfIso(text);
  if (column.kind === "datetime") return column.codeOfIso(column.zoned ? inUtc(text) : text);
  const counted = column.kind === "integer" || column.kind === "number";
  return column.codeOf(counted ? plainDigits(text, column.decimal) : text);
}

/** What a clock on this device shows, as a time of UTC; what is no time stays as it is. */
function inUtc(text) {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? text : moment.toISOString();
}

/** Digits as people write them in Persian, Arabic or full width, as those that are counted with. */
export function plainDigits(text, decimal = ".") {
  const digit = (sign) => String(sign.charCodeAt(0) & 15);
  return text
    .replace(/[\u0660-\u0669\u06f0-\u06f9\uff10-\uff19]/g, digit)
    .replace(/[\u066b\uff0e]/g, decimal)
    .replace(/[\u2212\uff0d]/g, "-")
    .replace(/[\u200e\u200f\u061c\u066c]/g, "");
}

function hintOf(column) {
  if (column.kind === "category" || column.kind === "ordinal") {
    return "One of the values that the survey declares, as it is written there.";
  }
  const [low, high] = column.limits;
  const step = column.step && column.step !== "day" ? ` Only the ${column.step} counts.` : "";
  const local = column.zoned ? " In the time zone of this device." : "";
  const kind = { integer: "A whole number", number: "A number" }[column.kind] ?? "";
  const limits = kind ? `${kind}; below ${low} counts as ${low}, above ${high} as ${high}.` : "";
  const grouped = column.grouped && kind ? " Only the range that it falls into counts." : "";
  return `${limits}${grouped}${step}${local}`.trim() || `From ${low} to ${high}.`;
}

/** The direction of a question is that of its first letter; its answers follow it. */
function directionOf(text) {
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  const leftwards = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;
  return leftwards.test(first) ? "rtl" : "ltr";
}

function complaint(id) {
  return el("p", { class: "error", id: `${id}-error`, role: "alert", dir: "auto" });
}
