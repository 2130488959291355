// Exact numbers and random words: probabilities are whole numbers out of 2^64, nothing else.
//
// A random word is compared with a BigInt that was rounded to the private side. The same integers
// as local/probabilities.py; a file of vectors holds both programs to them.

import { Refusal } from "./text.js";

/** The number of values of a random word. */
export const WORD = 2n ** 64n;

const DIGITS = 60n; // of a decimal number, as in Python's context

/** A fraction as its text says, like "1/10", reduced. */
export function fraction(text) {
  if (typeof text !== "string" || !/^[0-9]{1,30}(\/[1-9][0-9]{0,29})?$/.test(text)) {
    throw new Refusal("Epsilon must be a fraction as text, like 1/10.");
  }
  const [top, bottom = "1"] = text.split("/");
  return reduced(BigInt(top), BigInt(bottom));
}

export function reduced(top, bottom) {
  let [a, b] = [top, bottom];
  while (b) [a, b] = [b, a % b];
  return { top: top / a, bottom: bottom / a };
}

export function fractionText({ top, bottom }) {
  return bottom === 1n ? `${top}` : `${top}/${bottom}`;
}

/** Below 0, 0 or above 0 as one fraction is smaller than, the same as or larger than another. */
export function compared(one, other) {
  const difference = one.top * other.bottom - other.top * one.bottom;
  return difference < 0n ? -1 : Number(difference > 0n);
}

export function added(one, other) {
  return reduced(one.top * other.bottom + other.top * one.bottom, one.bottom * other.bottom);
}

/** The quotient of two positive whole numbers, rounded up. */
export function ceilDiv(top, bottom) {
  return (top + bottom - 1n) / bottom;
}

/**
 * A fraction at most e^exponent, and less than one part in 10^57 below it.
 *
 * The exponent is rounded down to 60 digits, the power correctly rounded to 60 digits, and the next
 * smaller number of 60 digits taken.
 */
export function expBelow(exponent) {
  const name = fractionText(exponent);
  if (!powers.has(name)) powers.set(name, powerBelow(exponent));
  return powers.get(name);
}

const powers = new Map(); // a page asks for few of them, and for those often

function powerBelow(exponent) {
  const down = roundedDown(exponent);
  for (let more = 20n; ; more *= 2n) {
    const unit = 10n ** (DIGITS + more);
    const [low, high] = expBounds(down, unit).map((bound) => rounded(bound, unit));
    if (compared(low, high) === 0) return nextBelow(low);
  }
}

/** Whole numbers of 1/unit with e^x between them, by the series; x at most 32. */
function expBounds({ top, bottom }, unit) {
  let [low, high, sumLow, sumHigh] = [unit, unit, unit, unit];
  for (let n = 1n; n <= 64n || high > 1n; n += 1n) {
    low = (low * top) / (bottom * n);
    high = ceilDiv(high * top, bottom * n);
    sumLow += low;
    sumHigh += high;
  }
  return [sumLow, sumHigh + high]; // from x/n <= 1/2 on, what follows is at most the last term
}

/** A fraction rounded down to 60 digits. */
function roundedDown({ top, bottom }) {
  let scale = 1n;
  while (top * scale < bottom * 10n ** (DIGITS - 1n)) scale *= 10n;
  const digits = (top * scale) / bottom; // 60 of them, or those of a whole number
  return { top: digits, bottom: scale };
}

/** top / bottom, the bottom a power of ten, to the nearest number of 60 digits. */
function rounded(top, bottom) {
  const dropped = 10n ** (BigInt(top.toString().length) - DIGITS);
  return { top: (top + dropped / 2n) / dropped, bottom: bottom / dropped };
}

/** The next smaller number of 60 digits. */
function nextBelow({ top, bottom }) {
  const leading = 10n ** (DIGITS - 1n);
  if (top === leading) return { top: 10n * top - 1n, bottom: 10n * bottom };
  return { top: top - 1n, bottom };
}

/** The largest T with T / (WORD - T) <= ratio: the coin that tells the truth. */
export function splitBelow({ top, bottom }) {
  return (top * WORD) / (top + bottom);
}

/** The bits that a whole number needs; 0 needs none. */
export function bitLength(number) {
  return number ? number.toString(2).length : 0;
}

/** A stream of uniform 64-bit words. */
export class Words {
  /** `take(n)` gives n words, as BigInt. */
  constructor(take) {
    this.take = take;
  }

  word() {
    return this.take(1)[0];
  }

  /** A whole number uniform below a bound, exactly, by rejection. */
  below(bound) {
    const mask = (1n << BigInt(bitLength(bound - 1n))) - 1n;
    for (;;) {
      const kept = this.take(10).map((word) => word & mask).find((word) => word < bound);
      if (kept !== undefined) return kept;
    }
  }

  /** 32 hexadecimal digits that nobody can guess. */
  name() {
    return this.take(2).map((word) => word.toString(16).padStart(16, "0")).join("");
  }
}

/** Words of the browser's cryptographic generator. */
export function secureWords() {
  return new Words((n) => Array.from(crypto.getRandomValues(new BigUint64Array(n))));
}
