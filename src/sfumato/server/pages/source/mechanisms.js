// The mechanisms: a code goes in, an answer that hides it comes out.
//
// Each has `below` (answers are smaller), `truth` (the exact probability that the answer speaks for
// the truth), `chance` (that it speaks for a given other code), `answer(code, words)` and
// `fits(answer, code)`: whether an answer speaks for a code. As in local/**/*.py.

import { WORD, bitLength, ceilDiv, compared, expBelow, splitBelow } from "./exact.js";

const MOST_VALUE_BITS = 16;
const MOST_CELL_BITS = 26;

/** The smallest irreducible polynomial over GF(2) of each degree from 1 to 20, as bits. */
const POLYNOMIALS = [
  0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x83, 0x11b, 0x203, 0x409,
  0x805, 0x1009, 0x201b, 0x4021, 0x8003, 0x1002b, 0x20009, 0x40009, 0x80027, 0x100009,
];

/** Randomized response: of 2^64 words each other code gets `share`, the true one the rest. */
export class Grr {
  constructor(categories, epsilon) {
    const [odds, others] = [expBelow(epsilon), BigInt(categories - 1)];
    this.below = categories;
    this.share = 4n * ceilDiv((WORD / 4n) * odds.bottom, odds.top + others * odds.bottom);
    this.keep = WORD - others * this.share;
    this.truth = { top: this.keep, bottom: WORD };
    this.chance = { top: this.share, bottom: WORD };
  }

  answer(code, words) {
    const word = words.word();
    if (word < this.keep) return code;
    const other = Number((word - this.keep) / this.share);
    return other + Number(other >= code);
  }

  fits(answer, code) {
    return answer === code;
  }
}

/** An index j, likely one where row code + 1 of the Hadamard matrix has a plus. */
export class HadamardResponse {
  constructor(categories, epsilon) {
    this.indexBits = BigInt(bitLength(categories));
    this.keep = splitBelow(expBelow(epsilon)) >> this.indexBits;
    this.below = 2 ** Number(this.indexBits);
    this.truth = { top: this.keep << this.indexBits, bottom: WORD };
    this.chance = { top: 1n, bottom: 2n };
  }

  answer(code, words) {
    const [word, row] = [words.word(), code + 1];
    const index = Number(word & ((1n << this.indexBits) - 1n));
    const lie = word >> this.indexBits >= this.keep;
    return odd(index & row) === lie ? index : index ^ (row & -row);
  }

  fits(answer, code) {
    return !odd(answer & (code + 1));
  }
}

/** Local hashing: a seed, and a randomized response to the hash of the code under that seed. */
export class FastOlh {
  constructor(categories, epsilon) {
    Object.assign(this, bestResponse(categories, expBelow(epsilon)));
    this.values = 2 ** this.valueBits;
    this.below = 2 ** (this.seedBits + this.valueBits);
    this.chance = { top: 1n, bottom: BigInt(this.values) };
  }

  hashed(seed, code) {
    return fieldProduct(seed, code, this.seedBits) >> (this.seedBits - this.valueBits);
  }

  /** The lowest bits of a word are the seed, the next ones a drawn value, the rest a coin. */
  answer(code, words) {
    const word = words.word();
    const seed = Number(word & ((1n << BigInt(this.seedBits)) - 1n));
    const rest = word >> BigInt(this.seedBits);
    const drawn = Number(rest & BigInt(this.values - 1));
    const honest = rest >> BigInt(this.valueBits) < this.honest;
    return seed * this.values + (honest ? this.hashed(seed, code) : drawn);
  }

  fits(answer, code) {
    return this.hashed(Math.floor(answer / this.values), code) === answer % this.values;
  }
}

export const PROTOCOLS = { grr: Grr, "fast-olh": FastOlh, hadamard: HadamardResponse };

/** The response of least variance among all numbers of hash values; the first of equal ones. */
function bestResponse(categories, odds) {
  const least = bitLength(categories - 1);
  let best = null;
  for (let bits = 1; bits <= MOST_VALUE_BITS; bits += 1) {
    const seedBits = Math.max(least, bits);
    if (seedBits + bits > MOST_CELL_BITS) continue;
    const found = response(bits, seedBits, odds);
    if (best === null || compared(found.precision, best.precision) > 0) best = found;
  }
  return best;
}

/**
 * The integers of a response among g = 2^valueBits values. Of T values of the coin, `honest` tell
 * the truth, which is then told with the weight g honest + T - honest out of g T: p. The variance
 * is q (1 - q) / (p - q)^2 with q = 1/g; `precision` is its inverse, 0 where nothing is told.
 */
function response(valueBits, seedBits, odds) {
  const [values, total] = [1n << BigInt(valueBits), 1n << BigInt(64 - seedBits - valueBits)];
  const excess = odds.top - odds.bottom;
  const honest = (excess * total) / (excess + values * odds.bottom);
  const truth = { top: honest * (values - 1n) + total, bottom: total * values };
  const precision = { top: honest * honest * (values - 1n), bottom: total * total };
  return { valueBits, seedBits, honest, truth, precision };
}

/**
 * The product of two polynomials over GF(2), modulo the irreducible one of this degree. The steps
 * are the same whatever is multiplied: one of the two is the answer.
 */
function fieldProduct(one, other, degree) {
  let [product, a] = [0, one];
  for (let step = 0; step < degree; step++) {
    product ^= a & -((other >> step) & 1);
    a <<= 1;
    a ^= POLYNOMIALS[degree - 1] & -((a >> degree) & 1);
  }
  return product;
}

function odd(bits) {
  let parity = bits;
  for (const half of [16, 8, 4, 2, 1]) parity ^= parity >>> half;
  return (parity & 1) === 1;
}
