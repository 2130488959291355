// The device: one person's half of a survey. It trusts its own ledger only.
//
// It pins what was agreed, draws one answer in each round that is its own and repeats that one
// when asked again; together they never cost more than was agreed. Its round, the part it draws and
// every refusal of a plan do not depend on what the person answers. As survey/device/device.py.

import { added, compared, fraction, fractionText } from "./exact.js";
import { Grr, PROTOCOLS } from "./mechanisms.js";
import { tooMuch } from "./messages.js";
import { Refusal } from "./text.js";

const NOTHING = { top: 0n, bottom: 1n };

/** One person's half of a survey, without the person's answers. */
export class Client {
  /** `ledger`, if there is one, goes on where `toObject` was called. */
  constructor(agreed, words, ledger = null) {
    this.agreed = agreed;
    this.words = words;
    const { rounds, plans = {}, answers = {}, spent = {} } =
      ledger ?? { rounds: ownRounds(agreed, words) };
    Object.assign(this, { rounds, plans, answers, spent });
  }

  /**
   * The answer to a plan, or null where the round is not this client's own.
   *
   * The first answer of a round is the only one: the same plan gets the same answer again. `codes`
   * are the person's, by column; they are looked at if an answer is drawn.
   */
  answer(plan, codes) {
    this.admit(plan);
    if (this.draws(plan)) {
      const value = drawn(plan, codes, this.agreed, this.words);
      this.answers[plan.round] = { sfumato: 1, question: plan.id, answer: value };
      this.spent[plan.round] = plan.cost;
    }
    this.plans[plan.round] = plan.id;
    return this.answers[plan.round] ?? null;
  }

  /** Whether a plan is to be answered now for the first time. */
  draws(plan) {
    return this.rounds.includes(plan.round) && !(plan.round in this.answers);
  }

  /** Each round has one plan, rounds don't come back, and the sum never exceeds epsilon. */
  admit(plan) {
    const seen = this.plans[plan.round];
    if (seen !== undefined && seen !== plan.id) {
      throw new Refusal(
        `Round ${plan.round} was asked with another plan before, and a second answer would cost ` +
          "epsilon again.",
        "budget",
      );
    }
    if (seen === undefined && Object.keys(this.plans).some((number) => number > plan.round)) {
      throw new Refusal(
        `Round ${plan.round} is over: a later one was asked already.`,
        "budget",
      );
    }
    const after = added(this.cost, plan.cost);
    if (this.draws(plan) && compared(after, this.agreed.epsilon) > 0) {
      throw tooMuch(after, this.agreed.epsilon);
    }
  }

  /** What all answers so far have cost. */
  get cost() {
    return Object.values(this.spent).reduce(added, NOTHING);
  }

  /** The ledger: what was seen, answered and spent. Not for the server: it tells the round. */
  toObject() {
    const head = { sfumato: 1, kind: "client", survey: this.agreed.id, plans: { ...this.plans } };
    if (this.rounds.length === 1) {
      const [round] = this.rounds;
      return { ...head, round, answer: this.answers[round] ?? null };
    }
    const spent = Object.entries(this.spent).map(([round, cost]) => [round, fractionText(cost)]);
    return { ...head, answers: { ...this.answers }, spent: Object.fromEntries(spent) };
  }

  /** The client that `toObject` was called of; a state that does not hold together is refused. */
  static restore(state, agreed, words) {
    const fields = agreed.variant === "faithful" ? "answers,spent" : "answer,round";
    const names = Object.keys(state ?? {}).sort().join();
    const wanted = ["kind", "plans", "sfumato", "survey", ...fields.split(",")].sort().join();
    if (names !== wanted || state.kind !== "client" || state.sfumato !== 1) throw noState();
    if (state.survey !== agreed.id) throw noState();
    const read = agreed.variant === "faithful" ? bothRounds : oneRound;
    const ledger = read(state, agreed);
    for (const [round, plan] of Object.entries(state.plans)) {
      const question = ledger.answers[round]?.question;
      if (ledger.rounds.includes(Number(round)) && question !== plan) throw noState();
    }
    const answered = Object.keys(ledger.answers).every((round) => round in state.plans);
    if (!answered) throw noState();
    return new Client(agreed, words, ledger);
  }
}

/** The place of a part, drawn by its weight out of their sum. */
export function drawPart(plan, words) {
  let left = words.below(plan.total);
  return plan.parts.findIndex((part) => {
    left -= part.weight;
    return left < 0n;
  });
}

/** The cell of a person in a part, by code or by bin. */
export function cellOf(part, codes) {
  return part.columns.reduce((cell, column, i) => {
    const code = codes[column.name];
    return cell * part.shape[i] + (part.bins[i] === null ? code : part.bins[i][code]);
  }, 0);
}

/** What randomizes the cell of a part. */
export function mechanismOf(part, epsilon) {
  return new PROTOCOLS[part.protocol](part.cells, epsilon);
}

function drawn(plan, codes, agreed, words) {
  checkCodes(codes, agreed);
  if (agreed.variant === "faithful") {
    return plan.asked.map(({ column, epsilon }) =>
      new Grr(column.size, epsilon).answer(codes[column.name], words),
    );
  }
  const place = drawPart(plan, words);
  const part = plan.parts[place];
  return [place, mechanismOf(part, agreed.epsilon).answer(cellOf(part, codes), words)];
}

function checkCodes(codes, agreed) {
  for (const { name, size } of agreed.columns) {
    const code = codes[name];
    if (!Number.isInteger(code) || code < 0 || code >= size) {
      throw new Refusal("A question has no answer yet.");
    }
  }
}

/** The rounds in which a client answers; of two, a coin chooses one where people are halved. */
function ownRounds(agreed, words) {
  if (agreed.variant === "faithful") return [1, 2];
  return [1 + Number(words.below(BigInt(agreed.rounds)))];
}

function oneRound(state, agreed) {
  const { round, answer, plans } = state;
  if (!Number.isInteger(round) || round < 1 || round > agreed.rounds) throw noState();
  const held = answer === null ? {} : { [round]: answer };
  const spent = answer === null ? {} : { [round]: agreed.epsilon };
  return { rounds: [round], plans: { ...plans }, answers: held, spent };
}

function bothRounds(state, agreed) {
  const spent = {};
  for (const [round, cost] of Object.entries(state.spent)) spent[round] = fraction(cost);
  const total = Object.values(spent).reduce(added, NOTHING);
  const paired = Object.keys(spent).join() === Object.keys(state.answers).join();
  if (!paired || compared(total, agreed.epsilon) > 0) throw noState();
  if (1 in spent && compared(spent[1], agreed.roundEpsilon) !== 0) throw noState();
  return { rounds: [1, 2], plans: { ...state.plans }, answers: { ...state.answers }, spent };
}

function noState() {
  return new Refusal(
    "What this browser has kept of this survey can't be read, so it can't know what it has told.",
  );
}
