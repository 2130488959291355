// Holds the device in JavaScript to the vectors that the device in Python made.
//
// node vectors.mjs SOURCE VECTORS SECTION: prints how many vectors held; fails at the first other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [source, file, section] = process.argv.slice(2);
const load = (name) => import(new URL(name, pathToFileURL(`${source}/`)));
const [text, exact, mechanisms, columns, messages, client] = await Promise.all(
  ["text.js", "exact.js", "mechanisms.js", "columns.js", "messages.js", "client.js"].map(load),
);
const { Refusal, canonical, fingerprint, opened, parse, sha256 } = text;
const { Words, expBelow, fraction, fractionText, reduced } = exact;

/** Words that were drawn before; one too many is an error. */
function given(listed) {
  let place = 0;
  return new Words((n) => {
    const taken = listed.slice(place, place + n);
    assert.equal(taken.length, n, "more words than Python drew");
    place += n;
    return taken.map((word) => BigInt(`0x${word}`));
  });
}

/** The kind of a refusal, null for none; anything else that is thrown is an error. */
async function refusal(action) {
  try {
    await action();
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error.kind;
    throw error;
  }
}

const readAgreement = (words) => messages.readAgreement(parse(words));

const check = {
  async odds([epsilon, top, bottom]) {
    const found = expBelow(fraction(epsilon));
    const wanted = { top: BigInt(top), bottom: BigInt(bottom) };
    assert.deepEqual(reduced(found.top, found.bottom), wanted);
  },
  async thresholds([protocol, epsilon, size, numbers]) {
    const made = new mechanisms.PROTOCOLS[protocol](size, fraction(epsilon));
    const own = {
      grr: () => [made.keep, made.share],
      hadamard: () => [made.keep, made.indexBits],
      "fast-olh": () => [made.honest, made.valueBits, made.seedBits],
    };
    const truth = fractionText(reduced(made.truth.top, made.truth.bottom)).replace(/^1$/, "1/1");
    assert.deepEqual([...own[protocol]().map(String), truth], numbers);
  },
  async below({ bound, words, drawn }) {
    assert.equal(given(words).below(BigInt(bound)), BigInt(drawn));
  },
  async answers([protocol, epsilon, size, code, words, answers]) {
    const made = new mechanisms.PROTOCOLS[protocol](size, fraction(epsilon));
    const stream = given(words);
    assert.deepEqual(answers.map(() => made.answer(code, stream)), answers);
    assert.ok(answers.every((answer) => answer < made.below));
  },
  async codes({ column, size, cases }) {
    const found = columns.readColumn(parse(column));
    assert.equal(found.size, size);
    for (const [value, code] of cases) {
      let own = null;
      const kind = await refusal(() => {
        own = found.codeOf(value);
      });
      assert.equal(own, code, `${found.name}: ${JSON.stringify(value)}`);
      assert.equal(kind === null, code !== null);
      if (own !== null) assert.equal(typeof found.label(own), "string");
    }
  },
  async canonical(words) {
    assert.equal(canonical(parse(words)), words);
    const spaced = words.replace(":", ": ");
    assert.equal(await refusal(() => parse(spaced)), "input");
    assert.equal(await refusal(() => parse(words.slice(0, -1))), "input");
  },
  async surveys({ agreement, id, plans, ids, clients }) {
    const agreed = await readAgreement(agreement);
    assert.equal(agreed.id, id);
    const read = await Promise.all(plans.map((plan) => messages.readPlan(parse(plan), agreed)));
    assert.deepEqual(read.map((plan) => plan.id), ids);
    assert.deepEqual(ids, (await Promise.all(plans.map(sha256))).map((each) => each.slice(0, 32)));
    for (const { codes, words, answers, state } of clients) {
      const own = new client.Client(agreed, given(words));
      const said = read.map((plan) => own.answer(plan, codes)?.answer ?? null);
      assert.deepEqual(said, answers);
      assert.deepEqual(own.toObject(), state);
      const again = client.Client.restore(state, agreed, given([]));
      assert.deepEqual(again.answer(read.at(-1), codes)?.answer ?? null, answers.at(-1));
    }
  },
  async refusals({ agreement, cases }) {
    const agreed = await readAgreement(agreement);
    for (const [plan, kind] of cases) {
      assert.equal(await refusal(() => messages.readPlan(parse(plan), agreed)), kind, plan);
    }
  },
  async ledgers({ agreement, plans, runs }) {
    const agreed = await readAgreement(agreement);
    const read = await Promise.all(plans.map((plan) => messages.readPlan(parse(plan), agreed)));
    const codes = Object.fromEntries(agreed.columns.map((column) => [column.name, 0]));
    for (const { words, steps } of runs) {
      let own = new client.Client(agreed, given(words));
      for (const [place, outcome, state] of steps) {
        let found = null;
        const kind = await refusal(() => {
          found = own.answer(read[place], codes)?.answer ?? null;
        });
        assert.deepEqual(kind ?? found, outcome);
        assert.deepEqual(own.toObject(), state);
        own = client.Client.restore(own.toObject(), agreed, own.words);
      }
    }
  },
  async signatures([envelope, key, good, digest]) {
    let message = null;
    const kind = await refusal(async () => {
      message = await messages.readAnnouncement(await opened(envelope, key));
    });
    assert.equal(kind === null, good);
    if (good) {
      assert.equal(await sha256(envelope.payload), digest);
      assert.equal(message.agreement.id, await fingerprint(parse(envelope.payload).agreement));
    }
  },
  async announcements([message, good]) {
    const kind = await refusal(() => messages.readAnnouncement(parse(message)));
    assert.equal(kind === null, good, message);
  },
};

const vectors = JSON.parse(readFileSync(file, "utf8"))[section];
assert.ok(vectors.length > 0);
for (const vector of vectors) await check[section](vector);
process.stdout.write(`${vectors.length}\n`);
