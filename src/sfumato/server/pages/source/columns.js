// Columns: what may be answered to a question, and the code of each answer.
//
// A column is read from the signed agreement, strictly: what is not declared as Python declares it
// is refused. The rules of codes are those of schema/values.py.

import { DAY_STEPS, TIME_STEPS, dayOf, directives, momentOf, periodLabel } from "./calendar.js";
import { periodOf, periodStart } from "./calendar.js";
import { Refusal, floatText } from "./text.js";

const MOST_CODES = 1_000_000;
const LIMIT = 2n ** 61n;
const OTHER = "(other)";
const MISSING = "(missing)";
const TRUE = ["true", "t", "yes", "y", "1"];
const FALSE = ["false", "f", "no", "n", "0"];
const PRECISIONS = ["microsecond", "millisecond", "second", "minute", "hour"];
const UNITS = ["ms", "us", "ns"];
const NUMBER = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

const SEPARATORS = { ",": ",", ".": ".", " ": " \u00a0\u202f", "'": "'\u2019" };

const KINDS = {
  category: { make: choice, needs: ["values"], may: ["other"] },
  ordinal: { make: choice, needs: ["values"], may: ["other"] },
  boolean: { make: yesOrNo, needs: [], may: ["texts"] },
  integer: { make: integer, needs: ["low", "high"], may: ["step", "decimal", "thousands"] },
  number: { make: number, needs: ["edges"], may: ["decimals", "decimal", "thousands"] },
  date: { make: day, needs: ["low", "high"], may: ["step", "format"] },
  datetime: {
    make: moment,
    needs: ["low", "high"],
    may: ["step", "precision", "zone", "format", "unit"],
  },
};

/**
 * The column of an entry: `name`, `kind`, `size`, `codeOf(value)`, `label(code)`, `missingCode`,
 * `otherCode` and `hint`, what a value looks like.
 */
export function readColumn(entry) {
  const plain = entry !== null && typeof entry === "object" && !Array.isArray(entry);
  const kind = plain && Object.hasOwn(KINDS, entry.kind) ? KINDS[entry.kind] : null;
  if (kind === null) throw misfit("is of no known kind");
  const known = new Set(["name", "kind", "missing", "missing_texts", ...kind.needs, ...kind.may]);
  const fits = Object.keys(entry).every((each) => known.has(each));
  if (!fits || !kind.needs.every((each) => each in entry)) throw misfit("has other fields");
  if (!isText(entry.name) || !entry.name.trim()) throw misfit("has no name");
  spelled("missing" in entry ? entry.missing === true : true);
  return finished(entry, kind.make(entry));
}

function finished(entry, made) {
  const missing = entry.missing === true;
  const texts = missingTexts(entry, made.texts ?? []);
  const size = made.size + Number(missing);
  if (size > MOST_CODES || size < 1) throw misfit("has too many values");
  const missingCode = missing ? size - 1 : null;
  return Object.freeze({
    ...made,
    name: entry.name,
    kind: entry.kind,
    size,
    missingCode,
    otherCode: made.otherCode ?? null,
    label: (code) => (code === missingCode ? "no answer" : made.label(code)),
    codeOf(value) {
      if (value === null || texts.includes(String(value).trim())) {
        if (missing) return missingCode;
        throw refused("an answer, and leaving it out is not possible");
      }
      return made.code(value);
    },
  });
}

function missingTexts(entry, declared) {
  if (!("missing_texts" in entry)) return [];
  const texts = entry.missing_texts;
  spelled(isListOfTexts(texts) && texts.length > 0 && entry.missing === true);
  const own = new Set(declared.map((each) => each.trim()));
  const fits = texts.every((each) => each && each === each.trim() && !own.has(each));
  spelled(fits && new Set(texts).size === texts.length);
  return texts;
}

function choice(entry) {
  const texts = entry.values;
  spelled(isListOfTexts(texts) && texts.length > 0 && new Set(texts).size === texts.length);
  spelled(!texts.includes(OTHER) && !texts.includes(MISSING));
  const other = "other" in entry;
  spelled(!other || entry.other === true);
  const places = new Map(texts.map((text, place) => [text, place]));
  const otherCode = other ? texts.length : null;
  return {
    size: texts.length + Number(other),
    otherCode,
    texts,
    hint: "one of the declared values",
    label: (code) => (code === otherCode ? "something else" : texts[code]),
    code(value) {
      const found = places.get(String(value)) ?? otherCode;
      if (found === null) throw refused(this.hint);
      return found;
    },
  };
}

function yesOrNo(entry) {
  const own = "texts" in entry ? entry.texts : null;
  if (own !== null) {
    spelled(isListOfTexts(own) && own.length === 2 && own[0] !== own[1]);
    spelled(own.every((each) => each && each === each.trim()));
    spelled(!own.includes(OTHER) && !own.includes(MISSING));
  }
  const [no, yes] = own === null ? [FALSE, TRUE] : own.map((each) => [each]);
  return {
    size: 2,
    texts: own ?? [],
    hint: own === null ? "yes or no" : `${own[0]} or ${own[1]}`,
    label: (code) => (own ?? ["no", "yes"])[code],
    code(value) {
      if (typeof value === "boolean") return Number(value);
      const text = own === null ? value.trim().toLowerCase() : value.trim();
      if (!no.includes(text) && !yes.includes(text)) throw refused(this.hint);
      return Number(yes.includes(text));
    },
  };
}

function integer(entry) {
  const { low, high, step = 1n } = entry;
  spelled([low, high, step].every((each) => typeof each === "bigint"));
  spelled(low >= -LIMIT && high <= LIMIT && low <= high && step >= 1n && step <= LIMIT);
  spelled(!("step" in entry) || step !== 1n);
  const marks = marksOf(entry);
  const size = (high - low) / step + 1n;
  if (size > MOST_CODES) throw misfit("has too many values");
  return {
    size: Number(size),
    decimal: marks.decimal,
    hint: `a whole number, written like 1${marks.thousands}400`,
    limits: [String(low), String(high)],
    grouped: step > 1n,
    label(code) {
      const start = low + BigInt(code) * step;
      const end = start + step - 1n < high ? start + step - 1n : high;
      return step === 1n ? `${start}` : `${start} to ${end}`;
    },
    code(value) {
      const text = marks.plain(String(value).trim());
      if (!Number.isFinite(Number(text)) || !/^-?[0-9]+(?:\.0*)?$/.test(text)) {
        throw refused(this.hint);
      }
      const exact = BigInt(text.split(".")[0]);
      const inside = exact < low ? low : exact > high ? high : exact;
      return Number((inside - low) / step);
    },
  };
}

function number(entry) {
  const { edges } = entry;
  const doubles = Array.isArray(edges) && edges.every((each) => typeof each === "number");
  spelled(doubles && edges.length >= 2 && edges.length <= MOST_CODES);
  spelled(edges.every((each, place) => place === 0 || edges[place - 1] < each));
  if ("decimals" in entry) {
    spelled(typeof entry.decimals === "bigint" && entry.decimals >= 0n && entry.decimals <= 12n);
  }
  const marks = marksOf(entry);
  const shown = edges.map((edge) => floatText(edge).replace(/\.0$/, ""));
  return {
    size: edges.length - 1,
    decimal: marks.decimal,
    hint: `a number, written like 14${marks.decimal}5`,
    limits: [shown[0], shown.at(-1)],
    grouped: true,
    label: (code) => `${shown[code]} to ${shown[code + 1]}`,
    code(value) {
      const text = marks.plain(String(value).trim());
      if (!NUMBER.test(text) || !Number.isFinite(Number(text))) throw refused(this.hint);
      let [low, high] = [0, edges.length - 2];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (edges[middle] <= Number(text)) low = middle;
        else high = middle - 1;
      }
      return low;
    },
  };
}

/** How numbers are written: `plain` makes 1234.5 of a text; one that is none becomes a mark. */
function marksOf(entry) {
  const { decimal = ".", thousands = "" } = entry;
  spelled(decimal === "." ? !("decimal" in entry) : decimal === ",");
  spelled(!("thousands" in entry) || (isText(thousands) && Object.hasOwn(SEPARATORS, thousands)));
  spelled(decimal !== thousands);
  if (decimal === "." && thousands === "") return { decimal, thousands, plain: (text) => text };
  const between = thousands && `[${SEPARATORS[thousands]}]`;
  const whole = between ? `(?:[1-9][0-9]{0,2}(?:${between}[0-9]{3})+|[0-9]+)` : "[0-9]+";
  const written = `^[+-]?(?:${whole}(?:[${decimal}][0-9]*)?|[${decimal}][0-9]+)(?:[eE][+-]?[0-9]+)?$`;
  const [number, marks] = [new RegExp(written), new RegExp(between || "(?!)", "g")];
  const plain = (text) => (number.test(text) ? text.replace(marks, "").replace(decimal, ".") : "?");
  return { decimal, thousands, plain };
}

function day(entry) {
  const limits = [entry.low, entry.high];
  const [low, high] = limits.map((text) => (isText(text) ? dayOf(text, null) : null));
  spelled(low !== null && high !== null && low <= high);
  const format = formatOf(entry, ["Y", "d", "m"], ["Y", "d", "m"]);
  return {
    ...periods(entry, DAY_STEPS, low, high),
    hint: format === null ? "a date like 2020-01-31" : `a date as ${format}`,
    limits,
    fromIso: (text) => dayOf(text, null),
    minuteOf: (text) => dayOf(text, format),
  };
}

function moment(entry) {
  const zone = "zone" in entry ? entry.zone : null;
  spelled(zone === null || (isText(zone) && /^[\w+\-/:]{1,64}$/.test(zone)));
  const zoned = zone !== null;
  const read = (text, format) => {
    const found = momentOf(text, format);
    return found === null || found.zoned !== zoned ? null : found.minute;
  };
  const limits = [entry.low, entry.high];
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?!000000)\d{6})?(?:[+-]\d\d:\d\d)?$/;
  spelled(limits.every((text) => isText(text) && iso.test(text)));
  const [low, high] = limits.map((text) => read(text, null));
  spelled(low !== null && high !== null && low <= high);
  isOption(entry, "precision", PRECISIONS, "second");
  isOption(entry, "unit", UNITS, "us");
  const letters = ["Y", "m", "d", "H", "M", "S", "f", ...(zoned ? ["z"] : [])];
  const format = formatOf(entry, ["Y", "m", "d", ...(zoned ? ["z"] : [])], letters);
  return {
    ...periods(entry, TIME_STEPS, low, high),
    hint: `a time like 2020-01-31T23:59:59${zoned ? "Z" : ""}`,
    limits,
    zoned,
    fromIso: (text) => read(text, null),
    minuteOf: (text) => read(text, format),
  };
}

/** Codes by periods of the calendar; what lies outside counts as the nearest inside. */
function periods(entry, steps, low, high) {
  const { step = "day" } = entry;
  spelled(steps.includes(step) && !("step" in entry && step === "day"));
  const first = periodOf(step, low);
  const size = periodOf(step, high) - first + 1;
  const codeAt = (minute) => Math.min(Math.max(periodOf(step, minute) - first, 0), size - 1);
  return {
    size,
    step,
    grouped: step !== "day" && step !== "minute",
    label: (code) => periodLabel(step, code === 0 ? low : periodStart(step, first + code)),
    /** The code of a date or time as input elements give it. */
    codeOfIso(text) {
      const minute = this.fromIso(text);
      if (minute === null) throw refused(this.hint);
      return codeAt(minute);
    },
    code(value) {
      const minute = this.minuteOf(value);
      if (minute === null) throw refused(this.hint);
      return codeAt(minute);
    },
  };
}

/** Left out where it is as usual, else one of those that are known. */
function isOption(entry, name, known, usual) {
  spelled(!(name in entry) || (known.includes(entry[name]) && entry[name] !== usual));
}

function formatOf(entry, needed, allowed) {
  if (!("format" in entry)) return null;
  spelled(isText(entry.format) && !entry.format.includes("\n"));
  const found = directives(entry.format);
  spelled(found !== null && new Set(found).size === found.length);
  spelled(needed.every((each) => found.includes(each)));
  spelled(found.every((each) => allowed.includes(each)));
  return entry.format;
}

export function isText(value) {
  return typeof value === "string" && value.isWellFormed();
}

function isListOfTexts(value) {
  return Array.isArray(value) && value.every(isText);
}

function spelled(holds) {
  if (!holds) throw misfit("is declared otherwise than this program declares it");
}

function misfit(why) {
  return new Refusal(`A question of this survey ${why}.`);
}

function refused(expected) {
  return new Refusal(`This is not ${expected}.`);
}
