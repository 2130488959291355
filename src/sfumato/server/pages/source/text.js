// Texts as they are signed and named: JSON in its one spelling, fingerprints, signatures.
//
// A signed text is verified as it came and read afterwards. It has one spelling (sorted names, no
// spaces, ASCII); a text in another one is refused, and with it repeated names. Whole numbers are
// BigInt, numbers with a point are doubles. The same as survey/protocol/envelopes.py and messages.py.

export const VERSION = 1n;
const DEEPEST = 32;
const LONGEST_NUMBER = 400;

/** What the device refuses to do, in words for the person. */
export class Refusal extends Error {
  /** `kind` is "budget" for what would cost more than agreed, else "input". */
  constructor(message, kind = "input") {
    super(message);
    this.kind = kind;
  }
}

/** What a signed text says; objects have no prototype. */
export function parse(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  if (reader.place !== text.length || canonical(value) !== text) {
    throw new Refusal("The message is not written as this program writes it.");
  }
  return value;
}

/** The one text of a value. */
export function canonical(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return floatText(value);
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const names = Object.keys(value).sort(byCodePoint);
  return `{${names.map((name) => `${quoted(name)}:${canonical(value[name])}`).join(",")}}`;
}

/** A double as Python writes it: the same digits, an exponent below 1e-4 and from 1e16 on. */
export function floatText(number) {
  if (!Number.isFinite(number)) throw new Refusal("A number in the message is not finite.");
  if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
  const [digits, power] = number.toExponential().split("e");
  if (power >= -4 && power < 16) {
    const plain = String(number);
    return plain.includes(".") ? plain : `${plain}.0`;
  }
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/** SHA-256 in hexadecimal. */
export async function sha256(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return hexadecimal(new Uint8Array(bytes));
}

/** 32 hexadecimal digits that name a message: the beginning of the SHA-256 of its one text. */
export async function fingerprint(message) {
  return (await sha256(canonical(message))).slice(0, 32);
}

export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What a signed text says, if the holder of the key (base64) signed it with Ed25519. */
export async function opened(envelope, key) {
  const { payload, signature } = checkedEnvelope(envelope);
  if (!(await verified(payload, signature, key))) {
    throw new Refusal(
      "The signature is not of the key that this survey is known by: somebody else wrote this, " +
        "or it was changed on the way.",
    );
  }
  return parse(payload);
}

function checkedEnvelope(envelope) {
  const found = envelope !== null && typeof envelope === "object" ? envelope : {};
  const names = Object.keys(found).sort().join();
  const texts = typeof found.payload === "string" && typeof found.signature === "string";
  if (names !== "payload,signature" || !texts) {
    throw new Refusal("A signed message has payload and signature.");
  }
  return found;
}

async function verified(payload, signature, key) {
  const [raw, signed] = [fromBase64(key, 32), fromBase64(signature, 64)];
  if (raw === null || signed === null) return false;
  let known;
  try {
    known = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error.name !== "NotSupportedError") return false;
    throw new Refusal(
      "This browser can't check Ed25519 signatures, so this page can't know who asks. Nothing " +
        "was answered. Use a newer browser.",
    );
  }
  return crypto.subtle.verify("Ed25519", known, signed, new TextEncoder().encode(payload));
}

/** Bytes of base64 text; null if it is none or of another length. */
export function fromBase64(text, length) {
  if (typeof text !== "string" || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  if (text.length !== 4 * Math.ceil(length / 3)) return null;
  try {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return bytes.length === length ? bytes : null;
  } catch {
    return null;
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.place = 0;
  }

  value(depth) {
    if (depth > DEEPEST) throw unreadable();
    const sign = this.text[this.place];
    if (sign === "{") return this.object(depth);
    if (sign === "[") return this.list(depth);
    if (sign === '"') return this.string();
    if (sign === "-" || (sign >= "0" && sign <= "9")) return this.number();
    return { t: true, f: false, n: null }[this.match(/true|false|null/y)[0]];
  }

  object(depth) {
    const found = Object.create(null); // no name means anything by itself
    this.items("}", () => {
      const name = this.string();
      this.match(/:/y);
      found[name] = this.value(depth + 1);
    });
    return found;
  }

  list(depth) {
    const found = [];
    this.items("]", () => found.push(this.value(depth + 1)));
    return found;
  }

  items(end, read) {
    this.place += 1;
    if (this.text[this.place] !== end) {
      do read();
      while (this.match(/[,}\]]/y) === ",");
      this.place -= 1;
    }
    if (this.text[this.place] !== end) throw unreadable();
    this.place += 1;
  }

  string() {
    try {
      return JSON.parse(this.match(/"(?:[^"\\]|\\.)*"/y));
    } catch {
      throw unreadable();
    }
  }

  number() {
    const text = this.match(/-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?/y);
    if (text.length > LONGEST_NUMBER) throw unreadable();
    return /[.e]/.test(text) ? Number(text) : BigInt(text);
  }

  match(pattern) {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text);
    if (found === null) throw unreadable();
    this.place = pattern.lastIndex;
    return found[0];
  }
}

function unreadable() {
  return new Refusal("The message is not whole, or not of this kind.");
}

function quoted(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function byCodePoint(left, right) {
  const [one, other] = [[...left], [...right]];
  for (let i = 0; i < Math.min(one.length, other.length); i += 1) {
    const difference = one[i].codePointAt(0) - other[i].codePointAt(0);
    if (difference) return difference;
  }
  return one.length - other.length;
}
