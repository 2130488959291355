// What a survey announces, agrees with a device and asks in a round: read strictly or refused.
//
// As survey/protocol/: announcements.py and rounds.py. Whatever does not fit is
// refused as a whole, and so is the same thing in other words: it would have another fingerprint.

import { isText, readColumn } from "./columns.js";
import { added, compared, fraction, fractionText, reduced } from "./exact.js";
import { PROTOCOLS } from "./mechanisms.js";
import { Refusal, VERSION, canonical, fingerprint } from "./text.js";

const ID = /^[0-9a-f]{32}$/;
const MOST_PARTS = 50_000;
const MOST_CELLS = 1_000_000;
const MOST_WEIGHT = 2n ** 62n;
const LEAST_EPSILON = { top: 1n, bottom: 10_000n };
const MOST_EPSILON = { top: 32n, bottom: 1n };
const BUDGET_UNITS = 2n ** 24n;
const LONGEST = { title: 200, text: 4_000, question: 500 };

const ANNOUNCED = [
  ...["sfumato", "kind", "task", "title", "text", "questions", "survey", "agreement"],
  ...["minimum", "invited", "closes", "page", "first_plan"],
];
const AGREED = ["sfumato", "kind", "columns", "epsilon", "variant", "shares"];
const PLAN = ["sfumato", "kind", "survey", "round", "epsilon", "bins", "parts"];
const PART = ["columns", "bins", "protocol", "weight"];
const RECORD_PLAN = ["sfumato", "kind", "survey", "round", "budgets"];

/** A survey as it is shown to a person: the words, and the agreement that a device pins. */
export async function readAnnouncement(message) {
  const trial = isObject(message) && Object.hasOwn(message, "rehearsal"); // only where it is true
  if (isObject(message) && !(Object.hasOwn(message, "first_plan") && message.first_plan)) {
    throw new Refusal(
      "The survey does not announce its first questions, so each device could be asked by others.",
    );
  }
  checkFields(message, trial ? [...ANNOUNCED, "rehearsal"] : ANNOUNCED, "A survey");
  const agreement = await readAgreement(message.agreement);
  const { task, title, text, questions, minimum, invited, closes, page } = message;
  const { rehearsal = true, first_plan: firstPlan } = message;
  const names = new Set(agreement.columns.map((column) => column.name));
  const asked = isObject(questions) ? Object.entries(questions) : [[null, null]];
  const fits =
    message.kind === "survey" && ID.test(task) && message.survey === agreement.id &&
    isWords(title, LONGEST.title, 1) && isWords(text, LONGEST.text, 0) &&
    asked.every(([name, words]) => names.has(name) && isWords(words, LONGEST.question, 1)) &&
    typeof minimum === "bigint" && minimum >= 1n && typeof invited === "boolean" &&
    (closes === null || /^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/.test(closes)) &&
    typeof page === "string" && /^([0-9a-f]{64})?$/.test(page) &&
    rehearsal === true && typeof firstPlan === "string" && ID.test(firstPlan);
  if (!fits) throw new Refusal("The survey is announced in an unknown form.");
  const about = { task, title, text, questions, agreement, minimum, invited, closes, page };
  return { ...about, rehearsal: trial, firstPlan };
}

/** The columns, epsilon and variant; `id` is the fingerprint that names the survey. */
export async function readAgreement(manifest) {
  checkFields(manifest, AGREED, "An agreement");
  const columns = Array.isArray(manifest.columns) ? manifest.columns.map(readColumn) : [];
  const byName = new Map(columns.map((column) => [column.name, column]));
  const asked = columns.filter((column) => column.size > 1);
  if (byName.size < columns.length || asked.length === 0) {
    throw new Refusal("A survey has columns of different names, and asks something.");
  }
  const rounds = { single: 1, grouped: 2, faithful: 2 }[manifest.variant];
  if (rounds === undefined) throw new Refusal("The survey is of an unknown variant.");
  const epsilon = fraction(manifest.epsilon);
  const halved = manifest.variant === "faithful";
  checkEpsilon(epsilon, halved ? asked.length : null);
  const spelled = {
    sfumato: VERSION,
    kind: rounds === 1 ? "one-round" : "two-round",
    columns: manifest.columns, // each was held to its one spelling
    epsilon: fractionText(epsilon),
    variant: manifest.variant,
    shares: rounds === 1 ? ["1"] : ["1/2", "1/2"],
  };
  checkSpelling(spelled, manifest, "agreement");
  const roundEpsilon = halved ? reduced(epsilon.top, 2n * epsilon.bottom) : epsilon;
  const id = await fingerprint(manifest);
  return { id, columns, byName, asked, epsilon, roundEpsilon, rounds, variant: manifest.variant };
}

/** The plan in a message of the agreed variant. */
export async function readPlan(message, agreed) {
  const read = agreed.variant === "faithful" ? readRecordPlan : readRoundPlan;
  const plan = read(message, agreed);
  return { ...plan, id: await fingerprint(message) };
}

/** Each person draws one part and answers about it with all of epsilon. */
function readRoundPlan(message, agreed) {
  checkFields(message, PLAN, "A plan");
  checkPromise(message, agreed);
  const bins = readBins(message.bins, agreed);
  if (!Array.isArray(message.parts) || !within(message.parts.length, 1, MOST_PARTS)) {
    throw new Refusal("A plan lists its parts.");
  }
  const parts = message.parts.map((entry) => readPart(entry, bins, agreed));
  const named = new Set(parts.map((part) => canonical(part.columns.map((each) => each.name))));
  if (named.size < parts.length) {
    throw new Refusal("A plan has two parts about the same columns.");
  }
  const total = parts.reduce((sum, part) => sum + part.weight, 0n);
  if (total > MOST_WEIGHT) throw new Refusal("The weights of a plan are too large.");
  const round = readRound(message.round, agreed.rounds);
  checkSpelling(spelledPlan(parts, round, agreed), message, "plan");
  return { round, parts, total, cost: agreed.epsilon };
}

function spelledPlan(parts, round, agreed) {
  const places = new Map();
  const cuts = [];
  const place = (cut) => {
    if (cut === null) return null;
    const text = cut.join();
    if (!places.has(text)) {
      places.set(text, BigInt(cuts.length));
      cuts.push(cut.map(BigInt));
    }
    return places.get(text);
  };
  const listed = parts.map((part) => ({
    columns: part.columns.map((column) => column.name),
    bins: part.bins.map(place),
    protocol: part.protocol,
    weight: part.weight,
  }));
  return {
    sfumato: VERSION,
    kind: "plan",
    survey: agreed.id,
    round: BigInt(round),
    epsilon: fractionText(agreed.epsilon),
    bins: cuts,
    parts: listed,
  };
}

function readBins(listed, agreed) {
  const longest = Math.max(...agreed.columns.map((column) => column.size));
  if (!Array.isArray(listed) || listed.length > agreed.columns.length) {
    throw new Refusal("A plan lists bins at most once a column.");
  }
  return listed.map((cut) => {
    const fits = Array.isArray(cut) && within(cut.length, 1, longest);
    if (!fits || !cut.every((bin) => typeof bin === "bigint" && within(bin, 0, cut.length - 1))) {
      throw new Refusal("Bins are whole numbers, one for each code.");
    }
    const found = cut.map(Number);
    if (new Set(found).size !== largest(found) + 1) {
      throw new Refusal("Bins are numbered from 0 on, none is empty.");
    }
    return found;
  });
}

function readPart(entry, bins, agreed) {
  const { columns: names, bins: cuts, protocol, weight } = isObject(entry) ? entry : {};
  const shaped =
    isObject(entry) && hasFields(entry, PART) && Array.isArray(names) && Array.isArray(cuts) &&
    within(names.length, 1, 2) && cuts.length === names.length && names.every(isText);
  if (!shaped) throw new Refusal("A part of a plan is about one or two columns.");
  const places = names.map((name) => agreed.columns.findIndex((column) => column.name === name));
  if (places.includes(-1) || (places.length === 2 && places[0] >= places[1])) {
    throw new Refusal("A part does not fit the agreed columns.");
  }
  const columns = places.map((place) => agreed.columns[place]);
  const own = cuts.map((cut) => {
    if (cut === null) return null;
    if (typeof cut !== "bigint" || !within(cut, 0, bins.length - 1)) {
      throw new Refusal("A part names bins that the plan does not list.");
    }
    return bins[Number(cut)];
  });
  const shape = columns.map((column, i) => (own[i] === null ? column.size : largest(own[i]) + 1));
  const cells = shape.reduce((product, size) => product * size, 1);
  const fits = columns.every((column, i) => own[i] === null || own[i].length === column.size);
  const known = Object.hasOwn(PROTOCOLS, protocol) && (names.length === 1 || protocol === "grr");
  const weighs = typeof weight === "bigint" && weight >= 1n && weight <= MOST_WEIGHT;
  if (!fits || !known || !weighs || !within(cells, 2, MOST_CELLS)) {
    throw new Refusal("A part does not fit the agreed columns.");
  }
  return { columns, bins: own, shape, cells, protocol, weight };
}

/** Everybody answers about every column, each with its own epsilon; the sum is the cost. */
function readRecordPlan(message, agreed) {
  checkFields(message, RECORD_PLAN, "A plan");
  if (message.survey !== agreed.id) throw otherSurvey();
  const { budgets } = message;
  if (!isObject(budgets) || !hasFields(budgets, agreed.asked.map((column) => column.name))) {
    throw new Refusal("A plan has budgets for the agreed columns.");
  }
  const asked = agreed.asked.map((column) => {
    const epsilon = fraction(budgets[column.name]);
    checkEpsilon(epsilon, null);
    return { column, epsilon };
  });
  const cost = asked.map((each) => each.epsilon).reduce(added);
  fraction(fractionText(cost)); // a ledger must be able to spell it
  const round = readRound(message.round, 2);
  const spelled = asked.map(({ column, epsilon }) => [column.name, fractionText(epsilon)]);
  const words = { sfumato: VERSION, kind: "record-plan", survey: agreed.id, round: BigInt(round) };
  checkSpelling({ ...words, budgets: plainObject(spelled) }, message, "plan");
  if (round === 1) checkFirst(asked, cost, agreed);
  return { round, asked, cost };
}

function checkFirst(asked, cost, agreed) {
  const { roundEpsilon } = agreed;
  if (compared(cost, roundEpsilon) > 0) throw tooMuch(cost, roundEpsilon);
  const even = reduced(roundEpsilon.top, roundEpsilon.bottom * BigInt(asked.length));
  if (asked.some(({ epsilon }) => compared(epsilon, even) !== 0)) {
    throw new Refusal("The first round is asked with the same epsilon each.");
  }
}

/** An epsilon that an answer may have; in two halves over so many columns, if a number is given. */
function checkEpsilon(epsilon, halvedOver) {
  const columns = BigInt(halvedOver ?? 1);
  const times = halvedOver === null ? 1n : 2n;
  const least = { top: LEAST_EPSILON.top * times * columns, bottom: LEAST_EPSILON.bottom };
  const most = { top: MOST_EPSILON.top * times, bottom: 1n };
  const long = epsilon.bottom * 2n * columns * BUDGET_UNITS * MOST_EPSILON.top >= 10n ** 30n;
  if (compared(epsilon, least) < 0 || compared(epsilon, most) > 0 || (halvedOver && long)) {
    throw new Refusal("Epsilon is outside of what an answer may have.");
  }
}

function checkPromise(message, agreed) {
  const epsilon = fraction(message.epsilon);
  if (compared(epsilon, agreed.epsilon) > 0) throw tooMuch(epsilon, agreed.epsilon);
  if (message.survey !== agreed.id || compared(epsilon, agreed.epsilon) !== 0) throw otherSurvey();
}

export function tooMuch(cost, left) {
  const [asks, agreed] = [fractionText(cost), fractionText(left)];
  return new Refusal(
    `The survey asks for epsilon ${asks}, but ${agreed} is what was agreed.`,
    "budget",
  );
}

function otherSurvey() {
  return new Refusal(
    "The plan belongs to another survey: other columns, epsilon or rules than agreed.",
  );
}

export function checkFields(message, expected, what) {
  if (!isObject(message)) throw new Refusal(`${what} is an object.`);
  if (message.sfumato !== VERSION) {
    throw new Refusal("This message is of another version than this page.");
  }
  if (!hasFields(message, expected)) {
    throw new Refusal(`${what} has ${[...expected].sort().join(", ")}.`);
  }
}

function checkSpelling(spelled, message, what) {
  if (canonical(spelled) !== canonical(message)) {
    throw new Refusal(`This ${what} is written otherwise than agreed on.`);
  }
}

function readRound(round, rounds) {
  if (typeof round !== "bigint" || !within(round, 1, rounds)) {
    throw new Refusal("A plan is for a round of the survey.");
  }
  return Number(round);
}

/** A text that people wrote: not too long, without signs that steer or reverse what is shown. */
function isWords(text, longest, least) {
  if (!isText(text) || [...text].length > longest || text.trim().length < least) return false;
  return !/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/u.test(text);
}

function largest(numbers) {
  return numbers.reduce((most, each) => Math.max(most, each), 0);
}

function plainObject(entries) {
  const found = Object.create(null);
  for (const [name, value] of entries) found[name] = value;
  return found;
}

function hasFields(message, expected) {
  const names = Object.keys(message);
  return names.length === expected.length && expected.every((each) => names.includes(each));
}

function within(number, low, high) {
  return number >= low && number <= high;
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
