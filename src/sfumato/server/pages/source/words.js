// What numbers mean, in plain words: the promise, the odds of a question, what will be sent.
//
// Percentages are made of exact fractions. Bounds are rounded up: nothing looks safer than it is.

import { mechanismOf } from "./client.js";
import { expBelow, fractionText } from "./exact.js";
import { Grr } from "./mechanisms.js";

const MOST_LISTED = 12;
const MOST_COUNTED = 20_000;

/** The promise as a bet, and how strong it is. */
export function promise(epsilon) {
  const { top, bottom } = expBelow(epsilon);
  const share = tenths({ top, bottom: top + bottom }, "up");
  const word = share <= 750 ? "strong" : share < 950 ? "moderate" : "weak";
  const bound = share > 999 ? "over 99.9" : decimal(share);
  const rest = share > 999 ? "less than 0.1" : decimal(1000 - share);
  return { percent: bound, rest, word, epsilon: fractionText(epsilon) };
}

/** How often people are asked about a part, and how often what is sent speaks for the truth. */
export function oddsOfParts(plan, agreed) {
  if (agreed.variant === "faithful") {
    return plan.asked.map(({ column, epsilon }) => ({
      columns: [column],
      asked: null,
      ...odds(new Grr(column.size, epsilon), "grr"),
    }));
  }
  const made = new Map(); // parts of one size have one mechanism
  return plan.parts.map((part) => {
    const kind = `${part.protocol} ${part.cells}`;
    if (!made.has(kind)) made.set(kind, odds(mechanismOf(part, agreed.epsilon), part.protocol));
    const asked = percent({ top: part.weight, bottom: plan.total });
    return { columns: part.columns, asked, ...made.get(kind) };
  });
}

function odds(mechanism, protocol) {
  return {
    protocol,
    truth: percent(mechanism.truth),
    chance: percent(mechanism.chance),
  };
}

/** What an answer says, for each part of it: columns, and the texts that it speaks for. */
export function meaning(plan, value, agreed) {
  if (agreed.variant === "faithful") {
    return plan.asked.map(({ column }, place) => ({
      columns: [column],
      protocol: "grr",
      fits: [[column.label(value[place])]],
      more: 0,
      of: column.size,
    }));
  }
  const [place, answer] = value;
  const part = plan.parts[place];
  const mechanism = mechanismOf(part, agreed.epsilon);
  const { columns, protocol } = part;
  if (part.cells > MOST_COUNTED) return [{ columns, protocol, number: answer }];
  const cells = Array.from({ length: part.cells }, (_, cell) => cell);
  const fitting = cells.filter((cell) => mechanism.fits(answer, cell));
  return [
    {
      columns,
      protocol,
      number: answer,
      fits: fitting.slice(0, MOST_LISTED).map((cell) => labelsOf(part, cell)),
      more: Math.max(0, fitting.length - MOST_LISTED),
      of: part.cells,
    },
  ];
}

/** For each column of a part the text of a cell: a label, or those of a bin. */
export function labelsOf(part, cell) {
  const last = part.shape.at(-1);
  const places = part.shape.length === 1 ? [cell] : [Math.floor(cell / last), cell % last];
  return part.columns.map((column, i) => {
    const cut = part.bins[i];
    if (cut === null) return column.label(places[i]);
    const codes = cut.flatMap((bin, code) => (bin === places[i] ? [code] : []));
    const ends = [column.label(codes[0]), column.label(codes.at(-1))];
    const run = codes.at(-1) - codes[0] + 1 === codes.length;
    if (codes.length > 3 && run) return `${ends[0]} to ${ends[1]}`;
    const shown = codes.slice(0, MOST_LISTED).map((code) => column.label(code));
    return shown.join(" or ") + (codes.length > MOST_LISTED ? " or …" : "");
  });
}

/** A fraction as a percentage to one decimal, nearest. */
export function percent(share) {
  const found = tenths(share, "near");
  if (found === 0 && share.top > 0n) return "less than 0.1%";
  if (found === 1000 && share.top < share.bottom) return "over 99.9%";
  return `${decimal(found)}%`;
}

function tenths({ top, bottom }, way) {
  const more = way === "up" ? bottom - 1n : bottom / 2n;
  return Number((1000n * top + more) / bottom);
}

function decimal(tenth) {
  return `${Math.floor(tenth / 10)}${tenth % 10 ? `.${tenth % 10}` : ""}`;
}
