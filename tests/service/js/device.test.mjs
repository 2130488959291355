// The device against servers that are honest, broken or hostile; run by node --test.
//
// SFUMATO_SOURCE is the folder of the page's sources, SFUMATO_VECTORS the file of vectors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { pathToFileURL } from "node:url";

const load = (name) => import(new URL(name, pathToFileURL(`${process.env.SFUMATO_SOURCE}/`)));
const { Device, NotTaken, Unsent, allKept, readLink } = await load("device.js");
const { Refusal, canonical, fingerprint, parse } = await load("text.js");
const { fraction } = await load("exact.js");
const { labelsOf, percent, promise } = await load("words.js");

const vectors = JSON.parse(readFileSync(process.env.SFUMATO_VECTORS, "utf8"));
const [single, grouped, faithful] = [0, 2, 4].map((place) => vectors.surveys[place]);
const announced = parse(vectors.signatures[0][0].payload);
const KEY = vectors.signatures[0][1];
const OTHER_KEY = vectors.signatures[1][1];
const TOKEN = "ab".repeat(24);
const LINK = { server: "https://s.example", task: announced.task, key: KEY, hash: null, token: TOKEN };
const CODES = grouped.clients[3].codes;

/** The key pair of the vectors: its secret is 0, 1, ... 31. */
const secret = await crypto.subtle.importKey(
  "jwk",
  {
    kty: "OKP",
    crv: "Ed25519",
    d: Buffer.from(Uint8Array.from({ length: 32 }, (_, i) => i)).toString("base64url"),
    x: Buffer.from(KEY, "base64").toString("base64url"),
  },
  "Ed25519",
  false,
  ["sign"],
);

async function signed(payload) {
  const bytes = await crypto.subtle.sign("Ed25519", secret, new TextEncoder().encode(payload));
  return { payload, signature: Buffer.from(bytes).toString("base64") };
}

async function announcement(survey, changes = {}) {
  const agreement = parse(survey.agreement);
  const own = { questions: {}, agreement, survey: await fingerprint(agreement) };
  if (survey.plans) own.first_plan = await fingerprint(parse(survey.plans[0]));
  return signed(canonical({ ...announced, ...own, ...changes }));
}

/** A browser's shelf in memory; one that is broken keeps nothing. */
class Memory {
  constructor() {
    this.held = new Map();
    this.broken = false;
  }
  async read(name) {
    return this.held.get(name) ?? null;
  }
  async all() {
    return [...this.held].sort();
  }
  async change(name, action) {
    await null;
    const text = action(this.held.get(name) ?? null);
    if (this.broken) throw new Refusal("kept nothing");
    if (text !== null) this.held.set(name, text);
  }
}

/** What a device has on its shelf. */
async function held(device) {
  return JSON.parse(await device.shelf.read(device.name));
}

/** A server that says what a test tells it to, and remembers what was posted. */
class Server {
  constructor(survey) {
    Object.assign(this, { survey, state: "open-1", posted: [], key: KEY, status: 201 });
    this.ask = (path, body) => this.reply(path, body ?? null);
  }
  async reply(path, body) {
    if (this.down) throw new Unsent("down");
    if (path === "") {
      const survey = this.announcement ?? (await announcement(this.survey));
      return told(200, { sfumato: 1, kind: "announced", state: this.state, key: this.key, survey });
    }
    if (path.startsWith("/rounds/")) {
      const plan = this.plan ?? this.survey.plans[Number(path.slice(8)) - 1];
      return told(200, typeof plan === "string" ? await signed(plan) : plan);
    }
    this.posted.push(body);
    const { report } = JSON.parse(body);
    const round = Number(this.state.slice(-1));
    const head = { sfumato: 1, kind: "receipt", report, round };
    const receipt = { ...head, hour: "2026-11-16T10Z", repeated: false, ...this.receipt };
    return told(this.status, this.status < 300 ? receipt : { error: "" });
  }
}

function told(status, value) {
  return { status, text: JSON.stringify(value) };
}

function make(server, shelf = new Memory(), link = LINK) {
  return new Device(link, { shelf, ask: server.ask });
}

/** A device whose coin fell on the first round. */
async function first(server, shelf = new Memory()) {
  for (;;) {
    const device = make(server, new Memory());
    await device.meet();
    if (!device.client.rounds.includes(1)) continue;
    for (const [name, text] of device.shelf.held) shelf.held.set(name, text);
    const again = make(server, shelf);
    await again.meet();
    return again;
  }
}

async function answered(server, shelf) {
  const device = await first(server, shelf);
  const { plan } = await device.look();
  await device.draw(plan, CODES);
  return device;
}

async function refuses(action, kind) {
  const known = (error) => error instanceof Refusal && (!kind || error.kind === kind);
  await assert.rejects(action, known);
}

test("what is drawn is what is sent, and the server has it once", async () => {
  const server = new Server(single);
  const device = await answered(server);
  assert.equal((await device.look()).phase, "send");
  const { body } = (await held(device)).uploads[1];
  await device.send(1);
  assert.deepEqual(server.posted, [body]);
  assert.deepEqual(Object.keys(JSON.parse(body)), ["sfumato", "kind", "report", "token", "answer"]);
  assert.equal((await device.look()).phase, "sent");
});

test("the answer is kept before the first send, and the same bytes go again", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const device = await answered(server, shelf);
  server.down = true;
  await assert.rejects(device.send(1), Unsent);
  server.down = false;
  const later = make(server, shelf);
  await later.meet();
  assert.equal((await later.look()).phase, "send");
  await later.send(1);
  await later.send(1);
  assert.equal(new Set(server.posted).size, 1);
});

test("drawing again draws nothing: the first answer is the only one", async () => {
  const server = new Server(single);
  const device = await answered(server);
  const { plan } = await device.look();
  const before = (await held(device)).uploads[1].body;
  for (let i = 0; i < 20; i += 1) await device.draw(plan, { ...CODES, smoker: i % 2 });
  assert.equal((await held(device)).uploads[1].body, before);
});

test("two tabs that draw at once draw one answer", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const one = await first(server, shelf);
  const other = make(server, shelf);
  await other.meet();
  const plans = [await one.look(), await other.look()];
  const draws = [one, other].map((device, place) => device.draw(plans[place].plan, CODES));
  const drawn = await Promise.all(draws);
  assert.equal(drawn[0].body, drawn[1].body);
});

test("two tabs that meet a survey at once hold it to one epsilon", async () => {
  const larger = { ...parse(single.agreement), epsilon: "3" };
  const [server, liar, shelf] = [new Server(single), new Server(single), new Memory()];
  liar.announcement = await announcement({ agreement: canonical(larger) });
  const tabs = [make(server, shelf), make(liar, shelf)];
  const met = await Promise.allSettled(tabs.map((tab) => tab.meet()));
  const refused = met.filter(({ reason }) => reason instanceof Refusal);
  assert.deepEqual(refused.map(({ reason }) => reason.kind), ["budget"]);
  const winner = tabs[met.findIndex(({ status }) => status === "fulfilled")];
  const { epsilon, announcement: digest } = await held(winner);
  assert.deepEqual([epsilon, digest], [winner.kept.epsilon, winner.kept.announcement]);
});

test("two tabs that meet a survey at once toss one coin", async () => {
  for (let trial = 0; trial < 20; trial += 1) {
    const [server, shelf] = [new Server(grouped), new Memory()];
    const tabs = [make(server, shelf), make(server, shelf)];
    await Promise.all(tabs.map((tab) => tab.meet()));
    assert.deepEqual(tabs[0].client.rounds, tabs[1].client.rounds);
  }
});

test("a key that another tab has pinned meanwhile is the one that counts", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const device = make(server, shelf);
  const other = make(server);
  await other.meet();
  const pinned = JSON.stringify({ ...(await held(other)), key: OTHER_KEY });
  shelf.change = (name, action) => {
    shelf.held.set(name, pinned);
    return Memory.prototype.change.call(shelf, name, action);
  };
  await refuses(device.meet());
  assert.equal(shelf.held.get(device.name), pinned);
});

test("an answer is never drawn in a round that is not the device's own", async () => {
  const server = new Server(grouped);
  let device = null;
  do {
    device = make(server);
    await device.meet();
  } while (device.client.rounds.includes(1));
  const { plan } = await device.look();
  await refuses(device.draw(plan, CODES));
  assert.deepEqual((await held(device)).uploads, {});
});

test("what another tab deleted is neither sent nor made anew", async () => {
  const server = new Server(single);
  const device = await answered(server);
  const { plan } = await device.look();
  device.shelf.held.clear();
  await refuses(device.draw(plan, CODES));
  await refuses(device.send(1));
  assert.deepEqual(server.posted, []);
  assert.equal(device.shelf.held.size, 0);
});

test("what was deleted while it was sent has its receipt and stays deleted", async () => {
  const server = new Server(single);
  const device = await answered(server);
  device.ask = (path, body) => {
    device.shelf.held.clear();
    return server.reply(path, body);
  };
  assert.equal((await device.send(1)).hour, "2026-11-16T10Z");
  assert.equal(device.kept.uploads[1].receipt.hour, "2026-11-16T10Z");
  assert.equal(device.shelf.held.size, 0);
});

test("nobody finds the true answers in the browser, unless they were to be kept", async () => {
  const server = new Server(faithful);
  const device = await first(server);
  const { plan } = await device.look();
  await device.draw(plan, CODES);
  assert.equal((await held(device)).record, null);
  const text = await device.shelf.read(device.name);
  for (const name of Object.keys(CODES)) assert.ok(!text.includes(`"${name}"`), name);
});

test("true answers that may be kept are kept until the last round is drawn", async () => {
  const server = new Server(faithful);
  const device = await first(server);
  const { plan } = await device.look();
  await device.draw(plan, CODES, { remember: true });
  assert.deepEqual((await held(device)).record, CODES);
  await device.send(1);
  server.state = "open-2";
  await device.meet();
  const second = await device.look();
  assert.equal(second.phase, "answer");
  await device.draw(second.plan, CODES, { remember: true });
  assert.equal((await held(device)).record, null);
  await device.send(2);
  assert.equal(server.posted.length, 2);
});

test("in a round that is not its own the device sends nothing and says so", async () => {
  const server = new Server(grouped);
  let device = null;
  do {
    device = make(server);
    await device.meet();
  } while (device.client.rounds.includes(1));
  assert.equal((await device.look()).phase, "other-round");
  server.state = "open-2";
  await device.meet();
  assert.equal((await device.look()).phase, "answer");
  assert.deepEqual(server.posted, []);
});

test("a changed announcement is refused, whoever signed it", async () => {
  for (const changes of [{ title: "Another" }, { minimum: 2n }, { invited: false }]) {
    const [server, shelf] = [new Server(single), new Memory()];
    await first(server, shelf);
    server.announcement = await announcement(single, changes);
    await refuses(make(server, shelf).meet(), "budget");
    assert.deepEqual(server.posted, []);
  }
});

test("a larger epsilon or another domain is refused also before an answer", async () => {
  const manifest = parse(single.agreement);
  const wider = { ...manifest.columns[2], high: 95n };
  for (const changes of [{ epsilon: "3" }, { columns: [...manifest.columns.slice(0, 2), wider] }]) {
    const [server, shelf] = [new Server(single), new Memory()];
    await first(server, shelf);
    server.announcement = await announcement({ agreement: canonical({ ...manifest, ...changes }) });
    await refuses(make(server, shelf).meet(), "budget");
  }
});

test("a plan with a larger epsilon is refused and nothing is drawn", async () => {
  const server = new Server(single);
  const device = await first(server);
  server.plan = canonical({ ...parse(single.plans[0]), epsilon: "4" });
  await refuses(device.look(), "budget");
  assert.deepEqual((await held(device)).uploads, {});
});

test("a second plan for a round that was answered is refused", async () => {
  const server = new Server(faithful);
  server.state = "open-2";
  const device = await answered(server);
  const plan = parse(faithful.plans[1]);
  const [name] = Object.keys(plan.budgets);
  server.plan = canonical({ ...plan, budgets: { ...plan.budgets, [name]: "1/100" } });
  await refuses(device.look(), "budget");
  assert.deepEqual(server.posted, []);
});

test("a first round that comes back after the second is refused", async () => {
  const server = new Server(faithful);
  server.state = "open-2";
  const device = await answered(server);
  server.state = "open-1";
  await device.meet();
  await refuses(device.look(), "budget");
});

test("another key, another signature or another survey is refused", async () => {
  const server = new Server(single);
  await refuses(make(server, new Memory(), { ...LINK, key: OTHER_KEY }).meet());
  await refuses(make(server, new Memory(), { ...LINK, task: "f".repeat(32) }).meet());
  const envelope = await announcement(single);
  const payload = envelope.payload.replace('"minimum":', '"minimum":9');
  server.announcement = { ...envelope, payload };
  await refuses(make(server).meet());
  assert.deepEqual(server.posted, []);
});

test("a plan that somebody else signed is refused", async () => {
  const server = new Server(single);
  const device = await first(server);
  server.plan = { payload: single.plans[0], signature: vectors.signatures[0][0].signature };
  await refuses(device.look());
});

test("without a key in the link the first one is pinned, and another one refused", async () => {
  const [server, shelf, link] = [new Server(single), new Memory(), { ...LINK, key: null }];
  await make(server, shelf, link).meet();
  assert.equal((await held(make(server, shelf))).pinned, "first seen");
  await refuses(make(server, shelf, { ...LINK, key: OTHER_KEY }).meet());
  server.key = OTHER_KEY; // a server that forgot its key, or another one
  await make(server, shelf, link).meet();
});

test("a browser that keeps nothing answers nothing", async () => {
  const server = new Server(single);
  const shelf = new Memory();
  shelf.broken = true;
  await refuses(make(server, shelf).meet());
  const lost = new Memory();
  lost.change = async (name, action) => void action(null);
  await refuses(make(server, lost).meet());
  assert.deepEqual(server.posted, []);
});

test("an answer that can't be kept is not sent", async () => {
  const server = new Server(single);
  const device = await first(server);
  const { plan } = await device.look();
  device.shelf.broken = true;
  await refuses(device.draw(plan, CODES));
  assert.equal((await device.look()).phase, "answer");
  assert.deepEqual((await held(device)).uploads, {});
});

test("what was kept and is damaged is refused, not made anew", async () => {
  const server = new Server(single);
  const device = await answered(server);
  const whole = await held(device);
  const damaged = [
    "{", "null", "{}", "[]", '"x"',
    JSON.stringify({ ...whole, client: { ...whole.client, answer: null } }),
    JSON.stringify({ ...whole, client: { ...whole.client, survey: "0".repeat(32) } }),
    JSON.stringify({ ...whole, client: null }),
  ];
  for (const text of damaged) {
    device.shelf.held.set(device.name, text);
    await refuses(make(server, device.shelf).meet());
  }
  assert.equal((await allKept(device.shelf)).length, 1);
});

test("refusals of the server are told in plain words, and the answer stays", async () => {
  const server = new Server(single);
  const device = await answered(server);
  const busy = /too much/;
  const once = { 403: /invitation/, 422: /understand/, 500: /error/ };
  const words = { ...once, 429: busy, 503: busy };
  for (const [status, pattern] of Object.entries(words)) {
    server.status = Number(status);
    const told = (error) => error instanceof Unsent && pattern.test(error.message);
    await assert.rejects(device.send(1), told);
    assert.equal((await held(device)).uploads[1].receipt, null);
  }
  assert.equal(new Set(server.posted).size, 1);
});

test("an answer that will never be taken is marked so, and is not offered for sending", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const device = await answered(server, shelf);
  server.status = 409;
  await assert.rejects(device.send(1), (error) => error instanceof NotTaken);
  assert.equal((await device.look()).phase, "refused");
  const later = make(server, shelf);
  await later.meet();
  assert.equal((await later.look()).phase, "refused");
});

test("a survey of another hash than the link's is refused, and the same one is not", async () => {
  const server = new Server(single);
  const device = await first(server);
  assert.match(device.hash, /^[0-9a-f]{40}$/);
  await make(server, new Memory(), { ...LINK, hash: device.hash }).meet();
  await refuses(make(server, new Memory(), { ...LINK, hash: "0".repeat(40) }).meet());
});

test("another first plan than the announced one is refused", async () => {
  const server = new Server(single);
  const plan = await fingerprint(parse(single.plans[0]));
  server.announcement = await announcement(single, { first_plan: plan });
  const device = await first(server);
  assert.equal((await device.look()).phase, "answer");
  server.announcement = await announcement(single, { first_plan: "0".repeat(32) });
  const marked = await first(server);
  await refuses(marked.look());
});

test("a survey that announces no first plan is refused, and no plan is asked for", async () => {
  for (const said of ["", null]) {
    const [server, asked] = [new Server(single), []];
    server.announcement = await announcement(single, { first_plan: said });
    const device = make({ ask: (path, body) => asked.push(path) && server.reply(path, body) });
    await assert.rejects(device.meet(), /does not announce its first questions/);
    assert.deepEqual([asked, server.posted], [[""], []]);
  }
  const server = new Server(single);
  const { first_plan: _, ...rest } = parse((await announcement(single)).payload);
  server.announcement = await signed(canonical(rest));
  await assert.rejects(make(server).meet(), /does not announce its first questions/);
});

test("a rehearsal says so, and in no other spelling", async () => {
  const server = new Server(single);
  assert.equal((await first(server)).announcement.rehearsal, false);
  server.announcement = await announcement(single, { rehearsal: true });
  assert.equal((await first(server)).announcement.rehearsal, true);
  for (const rehearsal of [false, "true"]) {
    server.announcement = await announcement(single, { rehearsal });
    await refuses(make(server).meet());
  }
});

test("what other surveys asked for adds up, whatever their epsilon and columns", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const device = await answered(server, shelf);
  const other = await held(device);
  const epsilon = Number(other.epsilon);
  const elsewhere = { ...other, task: "f".repeat(32), epsilon: "101/100" };
  elsewhere.client = { ...elsewhere.client, survey: "e".repeat(32) };
  shelf.held.set("sfumato survey " + elsewhere.task, JSON.stringify(elsewhere));
  const { others, epsilon: sum, large } = await device.total();
  assert.equal(others, 1);
  assert.equal(Number(sum.top) / Number(sum.bottom), epsilon + 1.01);
  assert.equal(large, epsilon + 1.01 > 5);
});

test("more than epsilon 5 is drawn only with the person's word", async () => {
  const [server, shelf] = [new Server(single), new Memory()];
  const device = await first(server, shelf);
  const much = { ...(await held(device)), task: "f".repeat(32), epsilon: "32" };
  much.uploads = { 1: { body: "", receipt: null } };
  shelf.held.set("sfumato survey " + much.task, JSON.stringify(much));
  const { plan } = await device.look();
  await refuses(device.draw(plan, CODES), "budget");
  assert.deepEqual((await held(device)).uploads, {});
  await device.draw(plan, CODES, { confirmed: true });
  assert.deepEqual(Object.keys((await held(device)).uploads), ["1"]);
});

test("a receipt for another answer or round is none", async () => {
  for (const receipt of [{ report: "0".repeat(32) }, { round: 2 }, { extra: 1 }]) {
    const server = new Server(single);
    const device = await answered(server);
    server.receipt = receipt;
    await assert.rejects(device.send(1), Unsent);
    assert.equal((await held(device)).uploads[1].receipt, null);
  }
});

test("a link says server, survey, key and invitation, or is refused", () => {
  const parts = `survey=${LINK.task}&key=${KEY}&token=${LINK.token}`;
  const served = readLink(`https://s.example/answer#${parts}`);
  assert.deepEqual(served, LINK);
  assert.deepEqual(readLink(`file:///home/me/answer.html#server=https://s.example&${parts}`), LINK);
  assert.deepEqual(readLink(`https://s.example/answer#${parts.replaceAll("=&", "%3D&")}`), LINK);
  const deep = readLink(`https://s.example/deep/answer#survey=${LINK.task}`);
  assert.equal(deep.server, "https://s.example/deep");
  const bad = [
    "https://s.example/answer",
    "https://s.example/answer#survey=12",
    `https://s.example/answer#${parts.replace("token=", "token=x")}`,
    `https://s.example/answer#survey=${LINK.task}&key=AAAA`,
    `file:///home/me/answer.html#${parts}`,
    `file:///home/me/answer.html#server=http://s.example&${parts}`,
    `file:///home/me/answer.html#server=javascript:alert(1)&${parts}`,
    `file:///home/me/answer.html#server=https://me:you@s.example&${parts}`,
    `file:///home/me/answer.html#server=nowhere&${parts}`,
  ];
  for (const link of bad) assert.throws(() => readLink(link), Refusal, link);
});

test("odds are rounded to the worse side, and bins are told by their labels", () => {
  const one = { percent: "73.2", rest: "26.8", word: "strong", epsilon: "1" };
  assert.deepEqual(promise(fraction("1")), one);
  assert.equal(promise(fraction("2")).percent, "88.1");
  assert.equal(promise(fraction("5")).word, "weak");
  assert.equal(promise(fraction("32")).percent, "over 99.9");
  assert.equal(percent({ top: 1n, bottom: 10n ** 9n }), "less than 0.1%");
  const column = { label: (code) => `v${code}` };
  const part = { columns: [column, column], bins: [null, [0, 1, 0, 1, 1, 1]], shape: [3, 2] };
  assert.deepEqual(labelsOf(part, 5), ["v2", "v1 or v3 or v4 or v5"]);
});
