// The sections of one survey: what it is, who answered, the plan, estimates, fakes, the release.

import { frequencyChart, hourChart, networkChart } from "./owner-charts.js";
import { copyButton, download, el, facts, field, percent, rowHead, whole } from "./owner-dom.js";

const MOST_EDGES = 80;
const STATES = {
  created: "not open yet", "open-1": "round 1 is open", "closed-1": "round 1 is closed",
  "open-2": "round 2 is open", "closed-2": "round 2 is closed", released: "released",
  abandoned: "given up",
};

export const stateText = (state) => STATES[state] ?? state;

export function stepsOf(state, rounds) {
  const order = rounds === 2
    ? ["created", "open-1", "closed-1", "open-2", "closed-2", "released"]
    : ["created", "open-1", "closed-1", "released"];
  const names = { created: "Made", "open-1": "Round 1", "closed-1": rounds === 2 ? "Plan" : "Closed", "open-2": "Round 2", "closed-2": "Closed", released: "Released" };
  const now = order.indexOf(state);
  return el("ol", { class: "steps", "aria-label": "Life of the survey" }, order.map((each, place) =>
    el("li", { class: place < now ? "done" : place === now ? "now" : null, "aria-current": place === now ? "step" : null, text: names[each] })));
}

/** What the owner can do in a state: label, request, and what to confirm. */
export function actionsOf(status, rounds) {
  const number = status.state === "open-2" ? 2 : 1;
  const few = (status.answers[number] ?? 0) < status.minimum;
  const hint = few ? `It can be closed from ${whole(status.minimum)} answers on. The count above is refreshed by the hour; the server knows the present one.` : "";
  const open = (round) => ({ label: `Open round ${round}`, path: "open", body: {} });
  const close = { label: `Close round ${number}`, path: "close", body: {}, hint, title: `Close round ${number}?`, text: "No answer is taken afterwards, and it can't be opened again." };
  const abandon = { label: "Give the survey up", path: "close", body: { abandon: true }, risk: true, title: "Give the survey up?", text: "Nothing will be estimated or released, and this can't be undone." };
  const release = { label: "Make the release", path: "release", body: {}, title: "Make the release?", text: "A table is drawn and kept. It is made once. This can take a minute." };
  return { created: [open(1), abandon], "open-1": [close, abandon], "open-2": [close, abandon],
    "closed-1": rounds === 2 ? [open(2)] : [release], "closed-2": [release] }[status.state] ?? [];
}

export function countsSection(status, rounds) {
  const numbers = {};
  for (let round = 1; round <= rounds; round++) numbers[rounds === 2 ? `Answers of round ${round}` : "Answers"] = whole(status.answers[round] ?? 0);
  const least = whole(status.minimum), steps = status.rehearsal || status.minimum === 1;
  const shown = facts({ ...numbers, "Least for an estimate": least });
  for (const number of shown.querySelectorAll("dd")) number.classList.add("big");
  const hours = status.arrivals.some((row) => row.answers)
    ? el("figure", {}, hourChart(status.arrivals.filter((row) => row.answers)), rounds === 2 ? el("p", { class: "key" }, el("span", {}, el("i"), "round 1"), el("span", {}, el("i", { class: "two" }), "round 2")) : null,
      el("figcaption", { text: `${steps ? "Answers by hour." : `Answers in batches of ${least}, by the hour in which each was full.`} The server keeps no finer time than the hour. It keeps which invitations were used, and not what came with them.` }))
    : el("p", { class: "quiet", text: steps ? "Nobody answered yet." : `Fewer than ${least} answers, or they came in this hour: an open round is counted in steps of ${least}, by the hour.` });
  return [shown, hours];
}

export function invitationForm(link, invite) {
  const number = el("input", { type: "number", min: 1, max: 100000, value: 10, required: true });
  const uses = el("input", { type: "number", min: 1, max: 1000000, value: 1, required: true });
  const made = el("div", { class: "made", "aria-live": "polite" });
  const form = el("form", {}, el("div", { class: "fields" },
    field("How many", number), field("Answers that each may bring", uses, "1 for a person; more for a device that many share. Whoever has the link can use all of them.")),
    el("div", { class: "buttons" }, el("button", { text: "Make invitations" })));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const tokens = await invite({ number: Number(number.value), uses: Number(uses.value) });
    if (tokens) made.replaceChildren(...madeInvitations(tokens.map((token) => link(token))));
  });
  return [form, made];
}

function madeInvitations(links) {
  const csv = `link\r\n${links.join("\r\n")}\r\n`;
  return [
    el("h3", { text: `${whole(links.length)} invitations` }),
    el("p", { text: "They are shown once. Each link is a secret of the person who gets it." }),
    el("pre", { text: links.slice(0, 5).join("\n") + (links.length > 5 ? "\n…" : "") }),
    el("div", { class: "buttons" },
      el("button", { type: "button", text: "Save all as CSV", onclick: () => download("invitations.csv", csv, "text/csv") }),
      copyButton(links.join("\n"), "Copy all")),
  ];
}

export function planCards(plans, names, hashes = {}) {
  return plans.map((each) => {
    const chart = planChart(each, names);
    const words = each.words.map((text) => el("li", { dir: "auto", text }));
    return el("div", { class: "card" }, el("h3", { text: `Round ${each.round}` }), el("ul", {}, words), chart,
      each.parts.length ? partsTable(each.parts) : budgetsTable(each.budgets),
      el("p", { class: "hint" }, "Hash of these questions: ", el("span", { class: "mono", text: hashes[each.round] ?? "" }), each.round === 1 ? ". The survey’s own hash covers it." : ". Publish it: people’s pages show the one that they were asked by."));
  });
}

function planChart(each, names) {
  const network = each.why.network;
  if (network) {
    const edges = Object.entries(network).flatMap(([child, parents]) =>
      parents.map((parent) => ({ from: parent, to: child, weight: 1, title: `${parent} → ${child}` })));
    const shown = names.filter((name) => name in network);
    return [networkChart({ names: shown, edges, groups: each.why.clusters ?? [], arrows: true }),
      el("p", { class: "hint", text: "Arrows lead from a column to those that it helps to predict; equal colors are asked together." })];
  }
  const pairs = each.parts.filter((part) => part.columns.length === 2).slice(0, MOST_EDGES);
  if (!pairs.length) return null;
  const edges = pairs.map(({ columns: [from, to], share }) => ({ from, to, weight: share, title: `${from} and ${to}: ${percent(share)} of the people` }));
  const shown = names.filter((name) => pairs.some((part) => part.columns.includes(name)));
  return [networkChart({ names: shown, edges }), el("p", { class: "hint", text: "Pairs of columns that are asked about together; thicker lines are asked more often." })];
}

function partsTable(parts) {
  const rows = parts.map((part) => el("tr", {},
    rowHead(part.columns.join(" and ")),
    el("td", { class: "number", text: percent(part.share) }),
    el("td", { class: "number", text: part.cells.join(" × ") }), el("td", { text: part.protocol })));
  return details("What is asked, how often", ["About", "People", "Answers", "Protocol"], rows);
}

function budgetsTable(budgets) {
  const rows = Object.entries(budgets).map(([name, epsilon]) => el("tr", {},
    rowHead(name), el("td", { class: "number", text: epsilon.toPrecision(3) })));
  return details("Epsilon by column", ["Column", "Epsilon"], rows);
}

function details(title, heads, rows) {
  const head = el("tr", {}, heads.map((text, place) => el("th", { scope: "col", class: place && text !== "Protocol" ? "number" : null, text })));
  return el("details", {}, el("summary", { text: title }),
    el("div", { class: "table" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
}

export function estimateCards(told) {
  const cards = told.columns.map((column) => el("figure", { class: "card" },
    el("div", { class: "name" }, el("h3", { dir: "auto", text: column.name }), el("span", { text: `${whole(column.answers)} answers` })),
    frequencyChart(column),
    details("Numbers", ["Answer", "Share", "95% interval"], column.labels.map((label, place) => el("tr", {},
      rowHead(label), el("td", { class: "number", text: percent(column.frequencies[place], 2) }),
      el("td", { class: "number", text: column.intervals[place].map((end) => percent(end, 1)).join(" to ") }))))));
  const head = [
    told.simulated ? el("p", { class: "simulated", text: "Some of these answers were simulated: they protect nobody and say nothing about people." }) : null,
    el("p", { text: `From ${whole(told.answers)} answers. A bar is an estimate and may lie below zero; if no answers are fake, the line holds the true share of the people in about 95 of 100 cases.` }),
    el("p", { class: "hint", text: laterText(told) }),
  ];
  return [...head, el("div", { class: "grid" }, cards), pairTables(told.pairs)];
}

/** What has too few answers for an estimate, and when that changes. */
function laterText({ later, minimum }) {
  const least = whole(minimum);
  const pairs = later.pairs ? [`${whole(later.pairs)} ${later.pairs === 1 ? "pair" : "pairs"} of columns`] : [];
  const few = [...later.columns, ...pairs];
  const waiting = few.length ? `Not yet, fewer than ${least} answers that count here: ${few.join(", ")}. ` : "";
  return `${waiting}While a round is open, what is shown changes when ${least} more answers about the same have come, by the hour and one batch late; when it is closed, all answers count to what ${least} answered about in that round. The release is made of all answers, once.`;
}

function pairTables(pairs) {
  if (!pairs.length) return null;
  const tables = pairs.map((pair) => el("details", {}, el("summary", { dir: "auto", text: `${pair.columns.join(" and ")} (${whole(pair.answers)} answers)` }), heatTable(pair)));
  return el("div", { class: "card" }, el("h3", { text: "Pairs of columns" }), tables);
}

function heatTable(pair) {
  const highest = Math.max(...pair.frequencies.flat(), 1e-9);
  const head = el("tr", {}, el("td"), pair.labels[1].map((label) => el("th", { scope: "col", class: "number" }, el("bdi", { text: label }))));
  const rows = pair.labels[0].map((label, row) => el("tr", {}, rowHead(label),
    pair.labels[1].map((_, place) => {
      const share = pair.frequencies[row][place];
      const cell = el("td", {}, percent(share), " ", el("small", { text: `± ${percent(1.96 * pair.standard_errors[row][place])}` }));
      cell.style.setProperty("--share", String(Math.max(0, 0.45 * share / highest)));
      return cell;
    })));
  return el("div", { class: "table" }, el("table", { class: "heat" }, el("thead", {}, head), el("tbody", {}, rows)));
}

export function fakesCards(told) {
  const check = told.verdict;
  const verdict = check === null
    ? el("div", { class: "card" }, el("h3", { text: "No verdict yet" }), el("p", { text: "Answers are checked for fakes when a round is closed." }))
    : el("div", { class: check.alarm ? "card verdict alarm" : "card verdict" },
      el("h3", { text: check.alarm ? "Alarm: some answers look fake" : "No alarm" }), el("p", { dir: "auto", text: check.words }),
      check.found.length ? el("ul", {}, check.found.slice(0, 8).map((trace) => el("li", { dir: "auto", text: foundText(trace) }))) : null,
      busiest(check.busiest),
      el("p", { class: "hint", text: `Honest answers raise the alarm in at most ${percent(check.level, 0)} of surveys, at one look. It is made when a round is closed; the one at the end counts, and the release tells it.` }));
  const apart = told.columns.some((column) => column.one_part > column.by_plan); // else everybody is asked about everything
  const shown = apart ? ["by_plan", "one_part"] : ["by_plan"];
  const rows = told.columns.map((column) => el("tr", {}, rowHead(column.name),
    shown.map((which) => el("td", { class: "number", text: `+${column[which].toFixed(1)}` }))));
  const uses = told.most_uses === null ? "Anybody can answer as often as they like: this survey needs no invitation."
    : told.most_uses > 1 ? `One invitation can bring up to ${whole(told.most_uses)} answers in a round.` : null;
  const head = el("tr", {}, ["Column", ...(apart ? ["by the plan", "all about one question"] : ["points"])].map((text, place) => el("th", { scope: "col", class: place ? "number" : null, text })));
  const gain = el("div", { class: "card" }, el("h3", { text: "Worst gain per 1% of fakes, in points" }), el("p", { dir: "auto", text: told.words }),
    uses ? el("p", { text: uses }) : null,
    el("div", { class: "table" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
  return [verdict, gain];
}

function foundText(trace) {
  const where = trace.about.length ? `${trace.about.join(" and ")}: ` : "";
  const chance = trace.chance < 1e-12 ? "less than 1 in 10¹²" : `at most ${trace.chance.toPrecision(2)}`;
  return `${where}${trace.words} (chance ${chance}${trace.assumes ? `, if ${trace.assumes}` : ""})`;
}

function busiest(hour) {
  if (!hour || hour.answers < 3 * hour.usual) return null;
  return el("p", { class: "hint", text: `Most answers of one hour: ${whole(hour.answers)}, where ${whole(hour.usual)} is usual. Invitations that go out together do that too, so it raises no alarm.` });
}
