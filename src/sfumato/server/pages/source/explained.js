// Cards that explain: the promise of a survey, its odds, and what an answer would say.

import { card, el, folded, paragraph, said } from "./dom.js";
import { meaning, oddsOfParts, promise } from "./words.js";

const MOST_SHOWN = 60;

/** What anybody can learn at most. */
export function promiseCard(agreement, plan) {
  const { percent, rest, word, epsilon } = promise(agreement.epsilon);
  const bet = el(
    "p",
    { class: "odds" },
    "Suppose somebody gives even odds to two possible truths about you, and then sees all that " +
    "leaves " +
      `this device. After that neither can look likelier than ${percent}%: odds of at most ` +
      `${percent} to ` +
      `${rest} (epsilon = ${epsilon}).`,
  );
  return card(
    el("h3", {}, `A ${word} promise`),
    bet,
    paragraph(howItWorks(agreement, plan)),
    paragraph(
      "This holds whoever runs the server and whatever else is known about you. What the " +
      "survey finds " +
        "out about people in general may still be used to guess about you.",
    ),
  );
}

function howItWorks({ variant }, plan) {
  if (variant === "faithful") {
    return (
      "You answer every question here. The page then replaces each answer by another one with " +
      "a known " +
      "probability, and only these are sent. There are two rounds; each uses a half of epsilon " +
      "or what " +
      "is left of it, never more than was agreed."
    );
  }
  const coin = " You answer in one of two rounds; a coin on this device chose.";
  const turn = variant === "grouped" ? coin : "";
  const pairs = plan.parts.some((part) => part.columns.length === 2);
  const drawn = `draws one of them by lot${pairs ? ", or a pair," : ""} and `;
  const lot = plan.parts.length === 1 ? "" : drawn;
  return (
    `You answer every question here. The page then ${lot}replaces ` +
    `your answer by another one with a known probability. Only that one answer is sent.${turn}`
  );
}

/** What more than the usual epsilon means; it must be ticked before anything is asked. */
export function largeCard(total) {
  const { percent, rest, epsilon } = promise(total.epsilon);
  const box = el("input", { type: "checkbox", id: "large" });
  const before = "Together with what this browser has told before, this survey";
  const own = total.others ? before : "This survey";
  const text = el(
    "label",
    { for: "large" },
    `I want to answer although it protects me little: whoever sees it can be ${percent}% sure.`,
  );
  const node = el(
    "section",
    { class: "card warning" },
    el("h3", {}, "This protects you little"),
    paragraph(
      `${own} has epsilon ${epsilon}. Whoever gives even odds to two possible truths about you can ` +
        `reach odds of ${percent} to ${rest} after seeing what leaves this device. This page ` +
        "answers up to epsilon 5 without asking.",
    ),
    el("div", { class: "choice" }, box, text),
  );
  return { box, node };
}

/** How often a question is drawn, and how often what is sent speaks for the truth. */
export function oddsCard(plan, announcement) {
  const { agreement } = announcement;
  const parts = oddsOfParts(plan, agreement);
  const { percent, rest } = promise(agreement.epsilon);
  const lead = parts.find((part) => part.protocol === "grr") ?? parts[0];
  const told = lead.protocol === "grr" ? "is told truly" : "is among those that are spoken for";
  const example = paragraph(
    "For example, your answer to ",
    ...namesOf(lead.columns, announcement),
    ` ${told} with probability ${lead.truth}. Whoever sees it can raise a 50 : 50 guess to at ` +
    `most `,
    `${percent} : ${rest}.`,
  );
  const lot = agreement.variant === "faithful" ? [] : ["Drawn"];
  const heads = ["Question", ...lot, "Speaks for the truth"];
  const rows = parts.slice(0, MOST_SHOWN).map((part) => oddsRow(part, announcement));
  const left = parts.length - rows.length;
  const more = left > 0 ? paragraph(`… and ${left} more.`) : null;
  return card(
    el("h3", {}, "The odds of this very survey"),
    example,
    folded("All questions and their odds", scrolled(table(heads, rows)), more),
  );
}

function oddsRow({ columns, asked, truth, chance, protocol }, announcement) {
  const other = protocol === "grr" ? "" : `; for any other answer ${chance}`;
  return [namesOf(columns, announcement), ...(asked === null ? [] : [[asked]]), [truth + other]];
}

function scrolled(node) {
  return el("div", { class: "scroll" }, node);
}

/** A table: each row is a list of cells, each cell a list of texts and elements. */
function table(heads, rows, attributes = {}) {
  const body = rows.map(([first, ...others]) => {
    const cells = others.map((cell) => el("td", {}, ...cell));
    return el("tr", {}, el("th", { scope: "row" }, ...first), ...cells);
  });
  const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)));
  return el("table", attributes, el("thead", {}, head), el("tbody", {}, ...body));
}

/** What an answer says, in words. */
export function leavingCard(plan, value, announcement) {
  const parts = meaning(plan, value, announcement.agreement);
  if (parts.length === 1) return card(...inWords(parts[0], announcement));
  const rows = parts.map(({ columns, fits }) => [
    namesOf(columns, announcement),
    fits[0].map((text) => said(text)),
  ]);
  return card(
    paragraph("You are asked about everything. What will be sent:"),
    table(["Question", "Sent"], rows, { class: "drawn" }),
    el("p", { class: "soft" }, "Each was drawn at random; your true answers stay here."),
  );
}

function inWords({ columns, protocol, number, fits = null, more, of }, announcement) {
  const names = el("strong", {}, ...namesOf(columns, announcement));
  const about = paragraph("You are asked about: ", names);
  if (protocol === "grr" && fits?.length === 1) {
    const told = joined(fits[0].map((text) => said(text)), " and ");
    return [
      about,
      el("p", { class: "drawn" }, "What will be sent: ", el("strong", {}, ...told)),
      el("p", { class: "soft" }, "Drawn at random; your true answer stays here."),
    ];
  }
  const speaks = fits === null ? [] : [", which speaks alike for ", ...listed(fits, more)];
  const stands = fits === null ? [] : [...speaks, ` (of ${of} answers)`];
  const sent = el("strong", {}, `the number ${number}`);
  return [
    about,
    el("p", { class: "drawn" }, "What will be sent: ", sent, ...stands, "."),
    el("p", { class: "soft" }, "Drawn at random; your true answer may be among them or not."),
  ];
}

function listed(fits, more) {
  const texts = joined(fits.map((labels) => said(labels.join(" and "))), ", ");
  if (!texts.length) return ["none of the answers"];
  return more ? [...texts, ` and ${more} more`] : texts;
}

/** How a column is asked for. */
export function questionOf(column, announcement) {
  return announcement.questions[column.name] ?? column.name;
}

function namesOf(columns, announcement) {
  return joined(columns.map((column) => quoted(questionOf(column, announcement))), " and ");
}

function joined(nodes, between) {
  return nodes.flatMap((node, place) => (place ? [between, node] : [node]));
}

function quoted(text) {
  return el("q", {}, said(text));
}
