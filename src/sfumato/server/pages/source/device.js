// The device's half of the network: it pins a survey at first sight, keeps every answer before it
// is sent, and sends the same bytes again. What it keeps is in the browser, by the survey's name.
//
// Nothing is sent but what `draw` has kept; nothing is drawn when anything is not as it was agreed.
// Every step begins with what is kept then: tabs of one browser are one device.

import { Client } from "./client.js";
import { added, compared, fraction, fractionText, secureWords } from "./exact.js";
import { readAnnouncement, readPlan } from "./messages.js";
import { noStorage } from "./shelf.js";
import { Refusal, fromBase64, opened, sha256 } from "./text.js";

const PREFIX = "sfumato survey ";
const TIMEOUT_MS = 30_000;
const LONGEST_REPLY = 2 ** 24;
const HASH_DIGITS = 40;
const OPEN = { "open-1": 1, "open-2": 2 };
const AWAITED = ["created", "closed-1"];

/** The largest epsilon that is answered without a word for it; as survey/device/remote.py. */
export const MOST_EPSILON = { top: 5n, bottom: 1n };

/** The server could not be reached, or did not take an answer. The answer is kept. */
export class Unsent extends Error {}

/** The server will never take this answer: the round is over, or the invitation was used. */
export class NotTaken extends Error {}

/** What a person's link says: server, survey, and maybe the key and the invitation. */
export function readLink(address) {
  const page = new URL(address);
  const said = Object.create(null);
  for (const part of page.hash.slice(1).split("&")) {
    const [name, ...rest] = part.split("=");
    said[name] = decoded(rest.join("="));
  }
  const { survey = "", key = null, hash = null, token = null } = said;
  if (!/^[0-9a-f]{32}$/.test(survey)) {
    throw new Refusal("This address names no survey. Open the page by the link that you got.");
  }
  if (key !== null && fromBase64(key, 32) === null) {
    throw new Refusal("The key in this link is damaged. Ask for the link again.");
  }
  if (hash !== null && !/^[0-9a-f]{40}$/.test(hash)) {
    throw new Refusal("The survey’s hash in this link is damaged. Ask for the link again.");
  }
  if (token !== null && !/^[0-9a-f]{48}$/.test(token)) {
    throw new Refusal("The invitation in this link is damaged. Ask for the link again.");
  }
  return { server: serverOf(page, said.server ?? null), task: survey, key, hash, token };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where to ask: as the link says, else where the page came from. */
function serverOf(page, said) {
  const served = page.protocol === "https:" || page.protocol === "http:";
  if (said === null && !served) {
    throw new Refusal("This page was opened from a disk, and its link names no server.");
  }
  const server = URL.canParse(said ?? "") ? new URL(said) : new URL(".", page);
  const own = served && server.origin === page.origin;
  const near = ["127.0.0.1", "localhost", "[::1]"].includes(server.hostname);
  const secure = server.protocol === "https:" || (server.protocol === "http:" && (own || near));
  const plain = !server.username && !server.password && !server.search && !server.hash;
  if (!secure || !plain || (said !== null && !URL.canParse(said))) {
    throw new Refusal("The server in this link is not an https address.");
  }
  return server.href.replace(/\/+$/, "");
}

/** Asks a server about one survey: `ask(path, body)` gives status and text. */
export function asker(link) {
  const base = `${link.server}/v1/surveys/${link.task}`;
  return async (path, body = null) => {
    const posted = { method: "POST", body, headers: { "content-type": "application/json" } };
    const options = { cache: "no-store", credentials: "omit", redirect: "error", mode: "cors" };
    try {
      const reply = await fetch(base + path, {
        ...options,
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body === null ? {} : posted),
      });
      return { status: reply.status, text: (await reply.text()).slice(0, LONGEST_REPLY) };
    } catch {
      throw new Unsent("The server can't be reached. Are you online?");
    }
  };
}

/** One person's device in one survey. */
export class Device {
  constructor(link, { shelf, ask = asker(link), words = secureWords() }) {
    Object.assign(this, { link, shelf, ask, words });
    this.name = PREFIX + link.task;
    this.kept = null; // what the browser kept when it was last asked; null for an unseen survey
  }

  /** Ask for the survey, hold it to the key and to what was seen before, and pin it. */
  async meet() {
    const told = plainReply(await this.ask(""), ["key", "kind", "sfumato", "state", "survey"]);
    const known = await this.read();
    const key = known?.key ?? this.link.key ?? told.key;
    if (this.link.key !== null && this.link.key !== key) throw otherKey();
    this.announcement = await readAnnouncement(await opened(told.survey, key));
    const digest = await sha256(told.survey.payload);
    this.hash = digest.slice(0, HASH_DIGITS);
    if (this.link.hash !== null && this.link.hash !== this.hash) throw otherHash();
    if (this.announcement.task !== this.link.task) {
      throw new Refusal("The server shows another survey than the link.");
    }
    this.state = told.state;
    await this.change((kept) => {
      if (kept === null) return this.pinned(key, digest);
      if (kept.announcement !== digest) throw changedSurvey();
      if (kept.key !== key) throw otherKey(); // another tab was faster, with another link
      return kept;
    });
    this.client = this.restored(this.kept);
    return this.announcement;
  }

  /** What the survey said of itself, and the coin that chooses this device's round. */
  pinned(key, digest) {
    const { agreement, title } = this.announcement;
    return {
      sfumato: 1,
      kind: "device",
      task: this.link.task,
      server: this.link.server,
      key,
      pinned: this.link.key === null ? "first seen" : "link",
      announcement: digest,
      title,
      epsilon: fractionText(agreement.epsilon),
      client: new Client(agreement, this.words).toObject(),
      uploads: {},
      record: null,
    };
  }

  /**
   * What is to be done now: `phase` is "answer", "send", "sent", "refused", "other-round",
   * "waiting", "late" or "ended"; `plan` is that of the open round.
   */
  async look() {
    const open = OPEN[this.state] ?? null;
    if (open === null) return { phase: closedPhase(await this.known(), this), round: null };
    const reply = await this.ask(`/rounds/${open}`);
    if (reply.status === 404) return { phase: "waiting", round: null };
    const plan = await this.readPlan(reply, open);
    const kept = await this.known();
    const upload = kept.uploads[open];
    if (upload) return { phase: phaseOf(upload), round: open, plan };
    if (this.client.draws(plan)) return { phase: "answer", round: open, plan };
    await this.step((client) => client.answer(plan, null));
    const phase = closedPhase(kept, this) === "sent" ? "sent" : "other-round";
    return { phase, round: open, plan };
  }

  async readPlan(reply, open) {
    const { key } = await this.known();
    const envelope = plainReply(reply, ["payload", "signature"]);
    const plan = await readPlan(await opened(envelope, key), this.announcement.agreement);
    if (plan.round !== open) throw new Refusal("The server shows the plan of another round.");
    const { firstPlan } = this.announcement;
    if (open === 1 && plan.id !== firstPlan) throw otherPlan();
    this.client.admit(plan);
    return plan;
  }

  /**
   * What this browser has told in other surveys and would tell in this one: how many others, the
   * sum of all epsilons, and whether that is more than it answers without a word for it.
   */
  async total() {
    const others = (await allKept(this.shelf)).filter(
      ({ name, kept }) => name !== this.name && kept !== null && Object.keys(kept.uploads).length,
    );
    const told = others.map(({ kept }) => fraction(kept.epsilon));
    const epsilon = told.reduce(added, this.announcement.agreement.epsilon);
    return { others: others.length, epsilon, large: compared(epsilon, MOST_EPSILON) > 0 };
  }

  /**
   * Draw the answer to a plan once, and keep it with the bytes to send before anything is sent.
   * `confirmed` is the person's word for an epsilon above the usual.
   */
  async draw(plan, codes, { remember = false, confirmed = false } = {}) {
    if ((await this.total()).large && !confirmed) throw tooLarge();
    await this.step((client, kept) => {
      const answer = client.answer(plan, codes);
      if (answer === null) {
        throw new Refusal("This round is not the one of this browser.");
      }
      const uploads = { ...kept.uploads };
      uploads[plan.round] ??= { body: this.body(answer), receipt: null };
      const later = client.rounds.some((round) => round > plan.round);
      return { uploads, record: remember && later ? codes : null };
    });
    return this.kept.uploads[plan.round];
  }

  body(answer) {
    const { token } = this.link;
    return JSON.stringify({ sfumato: 1, kind: "upload", report: this.words.name(), token, answer });
  }

  /** Send what was kept for a round, and shown; the receipt. */
  async send(round) {
    const { body } = this.kept.uploads[round];
    if ((await this.known()).uploads[round]?.body !== body) throw forgotten();
    const reply = await this.ask("/answers", body);
    if (reply.status === 409) {
      await this.change((kept) => marked(kept, round, { body, receipt: null, refused: true }));
      throw new NotTaken(refusedWith(409));
    }
    if (reply.status !== 200 && reply.status !== 201) throw new Unsent(refusedWith(reply.status));
    const receipt = plainReply(reply, ["hour", "kind", "repeated", "report", "round", "sfumato"]);
    if (receipt.report !== JSON.parse(body).report || receipt.round !== round) {
      throw new Unsent("The server's receipt is for another answer.");
    }
    const hour = String(receipt.hour);
    const sent = { body, receipt: { hour, repeated: receipt.repeated === true } };
    const shown = marked(this.kept, round, sent);
    await this.change((kept) => marked(kept, round, sent));
    this.kept = shown; // also if it was deleted meanwhile: it has arrived
    return sent.receipt;
  }

  restored(kept) {
    return Client.restore(kept.client, this.announcement.agreement, this.words);
  }

  /** What this browser has kept of the survey by now, null if it has never seen it. */
  async read() {
    this.kept = readKept(await this.shelf.read(this.name));
    return this.kept;
  }

  /** The same where the survey was met. */
  async known() {
    const kept = await this.read();
    if (kept === null) throw forgotten();
    return kept;
  }

  /** The client goes on from where any tab has left it; `action` gives what else is changed. */
  async step(action) {
    let client = null;
    await this.change((kept) => {
      if (kept === null) throw forgotten();
      client = this.restored(kept);
      const { uploads = kept.uploads, record = kept.record } = action(client, kept) ?? {};
      return { ...kept, client: client.toObject(), uploads, record };
    });
    this.client = client;
  }

  /** Keep what `action` makes of what was kept, or refuse: what can't be kept can't be repeated. */
  async change(action) {
    let kept = null;
    await this.shelf.change(this.name, (text) => {
      kept = action(readKept(text));
      return kept && JSON.stringify(kept);
    });
    if (kept !== null && (await this.shelf.read(this.name)) === null) throw noStorage();
    this.kept = kept;
  }
}

/** What was kept, with what became of an upload; as it was if that is another one by now. */
function marked(kept, round, upload) {
  if (kept?.uploads[round]?.body !== upload.body) return kept;
  return { ...kept, uploads: { ...kept.uploads, [round]: upload } };
}

function phaseOf({ receipt, refused = false }) {
  if (receipt) return "sent";
  return refused ? "refused" : "send";
}

/** All surveys that this browser has kept something of. */
export async function allKept(shelf) {
  return (await shelf.all()).map(([name, text]) => ({ name, kept: tryKept(text) }));
}

function tryKept(text) {
  try {
    return readKept(text);
  } catch {
    return null;
  }
}

function readKept(text) {
  if (text === null) return null;
  let kept = null;
  try {
    kept = JSON.parse(text);
  } catch {
    kept = null;
  }
  const whole = kept !== null && kept.kind === "device" && kept.sfumato === 1;
  if (!whole || typeof kept.uploads !== "object" || kept.uploads === null) {
    throw new Refusal("What this browser kept of this survey can't be read.");
  }
  return kept;
}

function closedPhase(kept, device) {
  const { rounds } = device.client;
  const sent = rounds.every((round) => kept.uploads[round]?.receipt);
  if (sent) return "sent";
  const open = OPEN[device.state] ?? null;
  const unsent = Object.entries(kept.uploads).filter(([, each]) => !each.receipt);
  if (unsent.some(([round]) => Number(round) !== open)) return "late";
  return AWAITED.includes(device.state) ? "waiting" : "ended";
}

function plainReply({ status, text }, fields) {
  if (status === 404) throw new Unsent("The server does not know this survey, or not yet.");
  if (status === 429 || status >= 500) throw new Unsent(refusedWith(status));
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    found = null;
  }
  const names = found !== null && typeof found === "object" ? Object.keys(found).sort().join() : "";
  if (names !== fields.join()) throw new Unsent("The server's reply is not understood.");
  return found;
}

function refusedWith(status) {
  const words = {
    403: "The server takes answers with an invitation only, and knows none of yours. Open the " +
      "page by the link that you were given.",
    409: "The server did not take this answer: the round is over, or an answer has come with this " +
      "invitation already, from another browser or device.",
    413: "The server did not take it: it is too large.",
    422: "The server did not understand the answer.",
    429: "The server has too much to do just now.",
    503: "The server has too much to do just now.",
  };
  return words[status] ?? `The server answered with an error (${status}).`;
}

function otherKey() {
  return new Refusal(
    "The link names another key than the one that this browser knows this survey by.",
  );
}

function otherHash() {
  return new Refusal(
    "The server shows another survey than the one whose hash is in your link. A survey " +
      "that differs from the others’ could mark your answer. Ask whoever invited you.",
  );
}

function otherPlan() {
  return new Refusal(
    "The server shows other questions for the first round than the survey announced to everybody.",
  );
}

function tooLarge() {
  return new Refusal(
    "This survey asks for more than this page answers without your word for it.",
    "budget",
  );
}

function changedSurvey() {
  return new Refusal(
    "The survey was changed since this browser first saw it: its words, columns or epsilon " +
      "are others now.",
    "budget",
  );
}

function forgotten() {
  return new Refusal(
    "What this browser kept of this survey was deleted meanwhile, in another tab. Open the page " +
      "again.",
  );
}
