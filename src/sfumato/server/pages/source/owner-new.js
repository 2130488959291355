// The form that makes a survey: columns by hand, or a schema that was pasted or uploaded.

import { complain, copyButton, download, el, field, select, ticked } from "./owner-dom.js";

const KINDS = {
  boolean: "yes or no",
  category: "one of several",
  ordinal: "one of several, in order",
  integer: "a whole number",
  number: "a number, in ranges",
  date: "a date",
};
const VARIANTS = {
  single: "One round: shares of each answer",
  grouped: "Two rounds: half of the people each; also how answers hang together",
  faithful: "Two rounds: everybody in both, half of epsilon each",
};
const STEPS = { day: "by day", month: "by month", year: "by year" };

export function newSurveyForm(create) {
  const title = el("input", { required: true, maxlength: 200, dir: "auto" });
  const text = el("textarea", { maxlength: 4000, dir: "auto" });
  const epsilon = el("input", { required: true, value: "1", inputmode: "decimal" });
  const odds = el("p", { class: "hint", "aria-live": "polite" });
  const variant = select(VARIANTS, "grouped");
  const minimum = el("input", { type: "number", min: 1, value: 1000, required: true });
  const invited = el("input", { type: "checkbox", checked: true });
  const rehearsal = el("input", { type: "checkbox" });
  const closes = el("input", { type: "datetime-local" });
  const columns = columnsForm();
  const made = el("form", { class: "card" },
    field("Title", title),
    field("What it is for", text, "People read this first. Plain text."),
    columns.element,
    el("div", { class: "fields" },
      el("div", { class: "field" }, field("Epsilon for each person", epsilon), odds),
      field("Least answers", minimum, "Nobody is shown an estimate from fewer, and an open round is counted in steps of it."),
      field("Takes answers until", closes, "Empty: until you close it.")),
    field("Rounds", variant),
    ticked("An answer needs an invitation (without, one person can answer many times)", invited),
    ticked("A rehearsal: not a real survey (takes simulated answers, shows everything at once; people see it)", rehearsal),
    el("div", { class: "buttons" }, el("button", { text: "Make the survey" })));
  const tell = () => (odds.textContent = oddsText(epsilon.value));
  epsilon.addEventListener("input", tell);
  tell();
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    let asked;
    try {
      asked = columns.read();
    } catch (error) {
      complain(error.message);
      return;
    }
    create({
      title: title.value.trim(), text: text.value, epsilon: epsilon.value.trim(),
      variant: variant.value, minimum: Number(minimum.value), invited: invited.checked,
      ...(rehearsal.checked ? { rehearsal: true } : {}),
      ...(closes.value ? { closes: `${new Date(closes.value).toISOString().slice(0, 16)}Z` } : {}), ...asked,
    });
  });
  return made;
}

/** What epsilon means to a person: an even guess gets at most so much better. */
export function oddsText(text) {
  const epsilon = Number(text);
  if (!(epsilon > 0) || !Number.isFinite(epsilon)) return "A number above 0, for example 1.";
  const sure = 100 / (1 + Math.exp(-epsilon));
  const shown = sure > 99.5 ? "almost certainty" : `at most ${sure.toFixed(0)} : ${(100 - sure).toFixed(0)}`;
  const warned = epsilon > 5 ? " People’s devices answer more than 5 only if they are told to." : "";
  return `Whoever sees an answer can turn an even guess about a person into ${shown}.${warned}`;
}

function columnsForm() {
  const rows = el("div", { class: "columns-form" });
  const add = el("button", { type: "button", class: "plain", text: "Add a question" });
  const pasted = el("textarea", { class: "code", spellcheck: "false" });
  const file = el("input", { type: "file", accept: ".json,application/json" });
  const entries = [];
  const more = (focus) => {
    const entry = columnRow(entries.length + 1, () => {
      entries.splice(entries.indexOf(entry), 1);
      entry.element.remove();
      add.focus();
    });
    entries.push(entry);
    rows.append(entry.element);
    if (focus) entry.name.focus();
  };
  const either = () => {
    add.disabled = Boolean(pasted.value.trim());
    for (const entry of entries) entry.element.disabled = add.disabled;
  };
  add.addEventListener("click", () => more(true));
  file.addEventListener("change", async () => {
    if (file.files[0]) pasted.value = await file.files[0].text();
    either();
  });
  pasted.addEventListener("input", either);
  more(false);
  const instead = el("details", {}, el("summary", { text: "Or give a schema as JSON" }),
    field("Schema", pasted, "As sfumato schema draft writes it. It is used instead of the questions above."),
    field("From a file", file));
  const element = el("div", { class: "field" }, el("h3", { text: "Questions" }), rows, add, instead);
  const read = () => {
    if (pasted.value.trim()) return { schema: parsedSchema(pasted.value) };
    const columns = entries.map((entry) => entry.read());
    if (!columns.length) throw new Error("A survey needs a question. Add one.");
    const questions = {};
    entries.forEach((entry, place) => {
      if (entry.question.value.trim()) questions[columns[place].name] = entry.question.value.trim();
    });
    return { schema: { sfumato: 1, columns }, questions };
  };
  return { element, read };
}

function parsedSchema(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("The schema is not JSON.");
  }
}

function columnRow(number, remove) {
  const name = el("input", { required: true, dir: "auto", maxlength: 60 });
  const question = el("input", { dir: "auto", maxlength: 500 });
  const kind = select(KINDS, "boolean");
  const values = el("textarea", { dir: "auto" });
  const edges = el("input", { placeholder: "0, 10000, 20000, 50000" });
  const low = el("input"), high = el("input"), step = el("input", { type: "number", min: 1 });
  const every = select(STEPS, "month");
  const missing = el("input", { type: "checkbox" });
  const shown = {
    category: [field("Answers, one in a line", values)], ordinal: [],
    integer: [field("Lowest", low), field("Highest", high), field("Step", step, "Empty for every number.")],
    number: [field("Edges of the ranges", edges)], date: [field("How fine", every)],
  };
  const detail = el("div", { class: "fields" });
  const change = () => {
    low.type = high.type = kind.value === "date" ? "date" : "number";
    const ends = shown.integer.slice(0, 2);
    const parts = { ordinal: shown.category, date: [...ends, ...shown.date] };
    detail.replaceChildren(...(parts[kind.value] ?? shown[kind.value] ?? []));
  };
  kind.addEventListener("change", change);
  change();
  const element = el("fieldset", {}, el("legend", { text: `Question ${number}` }),
    el("div", { class: "fields" }, field("Short name", name, "The column of the table."), field("How people are asked", question), field("Answer", kind)),
    detail, ticked("May be left out", missing),
    el("p", {}, el("button", { type: "button", class: "link", text: "Remove this question", onclick: remove })));
  const read = () => {
    const found = { name: name.value.trim(), kind: kind.value };
    if (kind.value === "category" || kind.value === "ordinal") found.values = lines(values.value);
    if (kind.value === "integer") Object.assign(found, { low: Number(low.value), high: Number(high.value) });
    if (kind.value === "integer" && step.value) found.step = Number(step.value);
    if (kind.value === "number") found.edges = edges.value.split(/[,;\s]+/).filter(Boolean).map(Number);
    if (kind.value === "date") Object.assign(found, { low: low.value, high: high.value, step: every.value });
    if (missing.checked) found.missing = true;
    return found;
  };
  return { element, name, question, read };
}

function lines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** The tokens of a new survey: they are shown here and nowhere again. */
export function newTokens(made, go) {
  const file = `Survey ${made.task}\nOwner's token: ${made.admin}\nReader's token: ${made.reader}\nKey: ${made.key}\nHash: ${made.survey_hash}\n`;
  const token = (name, text) => el("div", { class: "field" }, el("h3", { text: name }), el("pre", { text }), copyButton(text));
  return el("section", { class: "card" }, el("h2", { text: "Keep these now" }),
    el("p", { text: "They are shown once. The server keeps only their digests and can't show them again." }),
    token("Owner: runs this survey", made.admin), token("Reader: sees counts and estimates", made.reader),
    el("div", { class: "buttons" },
      el("button", { type: "button", text: "Go to the survey", onclick: go }),
      el("button", { type: "button", class: "plain", text: "Save as a file", onclick: () => download("survey-tokens.txt", file, "text/plain") })));
}
