// The page: what a survey is, what it promises, the questions, what will leave, the receipt.

import { Device, NotTaken, Unsent, readLink } from "./device.js";
import { button, card, el, folded, paragraph, said } from "./dom.js";
import { largeCard, leavingCard, oddsCard, promiseCard, questionOf } from "./explained.js";
import { field } from "./inputs.js";
import { hourText, ledgerView } from "./ledger.js";
import { Shelf } from "./shelf.js";
import { Refusal } from "./text.js";
import { promise } from "./words.js";

const REHEARSAL =
  "A rehearsal: not a real survey. Answers may be made up, and its owner is shown counts and " +
  "estimates at once.";
const byId = (id) => document.getElementById(id);

let device = null;
let shelf = null;
let asked = null; // the plan of the open round

/** From the link to whatever is to be done now. */
async function start() {
  try {
    checkBrowser();
    const link = readLink(location.href);
    allowOnly(link.server);
    shelf ??= await Shelf.open();
    device = new Device(link, { shelf });
    await device.meet();
    showHead();
    await proceed();
  } catch (error) {
    showTrouble(error, start);
  }
  await showFooter();
}

function checkBrowser() {
  if (!globalThis.isSecureContext || !crypto.subtle) {
    throw new Refusal(
      "This page came over an unprotected connection, where browsers don’t let it check " +
        "signatures. Open it by https, or save it and open it from your disk.",
    );
  }
}

/** From now on the page can reach this one server and no other: policies only ever add up. */
function allowOnly(server) {
  const content = `connect-src ${new URL(server).origin}`;
  document.head.append(el("meta", { "http-equiv": "Content-Security-Policy", content }));
}

async function proceed() {
  const now = { ...(await device.look()), total: await device.total() };
  asked = now.plan ?? null;
  const views = { answer: showAbout, send: showKept, sent: showReceipt, refused: showRefused };
  (views[now.phase] ?? showNothingToDo)(now);
}

function showHead() {
  const { title, closes } = device.announcement;
  document.title = title;
  byId("title").textContent = title;
  const { key, pinned } = device.kept;
  const from = pinned === "link" ? "in your link" : "first seen here";
  const known = `signed by the key ${from}`;
  const end = closes?.replace("T", " ").replace("Z", " UTC") ?? null;
  const until = end === null ? [] : [el("span", {}, `until ${end}`)];
  const server = el("span", {}, `Asked by ${new URL(device.link.server).host}`);
  byId("who").replaceChildren(server, el("span", { title: key }, known), ...until);
}

/** Replace what is shown; the heading gets the focus: it is read, and Tab goes on from it. */
function show(step, heading, ...nodes) {
  const head = el("h2", { tabindex: -1 }, heading);
  byId("main").replaceChildren(head, ...nodes.filter((node) => node !== null));
  byId("steps").hidden = step === null;
  Array.from(byId("steps").children).forEach((item, place) => {
    if (place === step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  });
  head.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function showAbout(now) {
  const { text, agreement, rehearsal } = device.announcement;
  const owner = text ? el("p", { class: "owner said", dir: "auto" }, text) : null;
  const go = button("Answer the questions", () => showQuestions(now), { primary: true, id: "go" });
  const large = now.total.large ? largeCard(now.total) : null;
  if (large !== null) {
    go.disabled = true;
    large.box.addEventListener("change", () => (go.disabled = !large.box.checked));
  }
  show(
    0,
    "What this is",
    rehearsal ? el("p", { class: "warning" }, REHEARSAL) : null,
    owner,
    now.total.others ? el("p", { class: "warning" }, addsUp(now.total)) : null,
    promiseCard(agreement, now.plan),
    oddsCard(now.plan, device.announcement),
    ...whoSees(device.announcement),
    large?.node ?? null,
    el("div", { class: "actions" }, go),
  );
}

/** What this browser has told before counts, whatever the other surveys were called and asked. */
function addsUp({ others, epsilon }) {
  const many = others === 1 ? "another survey" : `${others} other surveys`;
  const { percent, rest, epsilon: sum } = promise(epsilon);
  return (
    `This browser has answered ${many} before. Where surveys ask about the same things, what they ` +
    `tell about you adds up: with this one to epsilon ${sum} at most, odds of ${percent} to ${rest}.`
  );
}

/** Who gets to see what: the owner by this software, and whoever runs the server. */
function whoSees({ minimum, rehearsal }) {
  const owner =
    `Each estimate that the owner is shown rests on ${minimum} answers or more. While a round is ` +
    `open, estimates and counts change by ${minimum} answers or more, and at most once an hour. ` +
    "When all rounds are closed, the release is made of all randomized answers, once.";
  const server =
    "Whoever runs the server can read each randomized answer, and by its invitation or network " +
    "address may know whose it is. The promise above holds against them, too.";
  const told = rehearsal || minimum === 1n ? [server] : [owner, server];
  return told.map((text) => el("p", { class: "soft" }, text));
}

function showQuestions(now) {
  const { agreement } = device.announcement;
  const record = device.kept.record ?? {};
  const told = ({ name }) => (Object.hasOwn(record, name) ? record[name] : null);
  const fields = agreement.asked.map((column, place) => [
    column,
    field(column, questionOf(column, device.announcement), place, told(column)),
  ]);
  const remember = rememberBox(now.plan);
  const type = { type: "submit", class: "primary", id: "draw" };
  const submit = el("button", type, "Show what will be sent");
  const form = el(
    "form",
    { novalidate: true },
    ...fields.map(([, each]) => each.node),
    remember?.node ?? null,
    el("div", { class: "actions" }, submit, button("Back", () => showAbout(now))),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const codes = readAll(fields, agreement);
    if (codes === null) return;
    try {
      const confirmed = now.total.large; // the button to these questions needs the person's word
      await device.draw(now.plan, codes, { remember: remember?.box.checked ?? false, confirmed });
      showPreview(now);
    } catch (error) {
      showTrouble(error, start);
    }
    showFooter();
  });
  const stays = "Your answers stay on this device. Nothing is sent from this form.";
  show(1, "Your answers", paragraph(stays), form);
}

/** The code of every column; null if one is missing, which is then shown and has the focus. */
function readAll(fields, agreement) {
  const codes = Object.create(null);
  for (const { name } of agreement.columns) codes[name] = 0; // one value only: not asked about
  let wrong = null;
  for (const [column, each] of fields) {
    try {
      codes[column.name] = each.read();
      each.fail("");
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      each.fail(error.message);
      wrong ??= each;
    }
  }
  wrong?.focus();
  return wrong === null ? codes : null;
}

/** Where a later round will ask again: whether the true answers may be kept until then. */
function rememberBox(plan) {
  if (!device.client.rounds.some((round) => round > plan.round)) return null;
  const box = el("input", { type: "checkbox", id: "remember" });
  const text =
    "Keep my true answers in this browser until the second round, so that I need not fill them " +
    "in again.";
  return { box, node: el("div", { class: "choice" }, box, el("label", { for: "remember" }, text)) };
}

/** What was drawn earlier and not sent yet. */
function showKept(now) {
  const note =
    "This answer was drawn earlier, and no receipt for it has come yet. It is sent as it is: no " +
    "other is drawn.";
  showPreview(now, note);
}

function showPreview(now, note = null) {
  const { body } = device.kept.uploads[now.round];
  const { answer } = JSON.parse(body).answer;
  const status = el("p", { role: "status", id: "status" });
  const send = button("Send", () => sendIt(now, status), { primary: true, id: "send" });
  const keep = button("Don’t send", () => showUnsent(now), { id: "dont" });
  const bytes = new TextEncoder().encode(body).length;
  show(
    2,
    "What will leave this device",
    note === null ? null : el("p", { class: "warning" }, note),
    leavingCard(now.plan, answer, device.announcement),
    el("h3", {}, `The message, byte by byte (${bytes})`),
    el("p", { class: "soft" }, `POST ${device.link.server}/v1/surveys/${device.link.task}/answers`),
    el("pre", { id: "body", tabindex: 0 }, body),
    paragraph(
      "The server also sees your network address and what your browser says of itself, as with " +
        "every page" + (device.link.token === null ? ". " : ", and your invitation, “token”. ") +
        "Please don’t decide by what was drawn whether to send it: a choice that depends on it " +
        "would tell something, too.",
    ),
    el("div", { class: "actions" }, send, keep),
    status,
  );
}

async function sendIt(now, status) {
  const send = byId("send");
  send.disabled = true;
  status.textContent = "Sending …";
  try {
    await device.send(now.round);
    showReceipt(now);
  } catch (error) {
    if (error instanceof NotTaken) {
      showRefused(now);
      return;
    }
    if (!(error instanceof Unsent)) {
      showTrouble(error, start);
      return;
    }
    const kept = "Your answer is kept in this browser, the very same one. You can send it again.";
    status.textContent = `${error.message} ${kept}`;
    send.disabled = false;
    send.textContent = "Send again";
    send.focus();
  } finally {
    showFooter();
  }
}

/** The server took another answer, or none any more: sending the same again changes nothing. */
function showRefused({ round }) {
  const { body } = device.kept.uploads[round];
  show(
    null,
    "Not counted",
    el(
      "p",
      { role: "alert" },
      "The server did not take this answer: the round is over, or an answer has come with this " +
        "invitation already, from another browser or device. This one is not counted, and sending " +
        "it again would change nothing.",
    ),
    folded("What was sent", el("pre", { tabindex: 0 }, body)),
  );
}

function showUnsent(now) {
  show(
    2,
    "Not sent",
    paragraph(
      "No answer was sent now. What was drawn is kept: if you come back, the same answer is shown " +
        "and may be sent, and no other one is ever drawn.",
    ),
    el("div", { class: "actions" }, button("Look at it again", () => showPreview(now))),
  );
}

function showReceipt() {
  const sent = Object.entries(device.kept.uploads).filter(([, each]) => each.receipt);
  const [round, { body, receipt }] = sent.at(-1);
  const facts = [
    ["Round", round],
    ["Arrived in the hour from", hourText(receipt.hour)],
    ["Name of the answer", JSON.parse(body).report],
  ];
  const later = device.client.rounds.some((each) => !device.kept.uploads[each]?.receipt);
  const end = later
    ? "There is a second round: open this page again then, with the same link and browser."
    : "You are done. This browser will not answer this survey again.";
  show(
    3,
    "Thank you: your answer has arrived",
    card(el("dl", { class: "facts" }, ...facts.map(fact))),
    paragraph(end),
    folded("What was sent", el("pre", { tabindex: 0 }, body)),
  );
}

function fact([name, value]) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value));
}

function showNothingToDo({ phase, round }) {
  const own = device.client.rounds.join(" and ");
  const passed = round !== null && device.client.rounds.every((each) => each < round);
  const texts = {
    waiting:
      device.state === "created"
        ? "This survey is not open yet. Come back later with the same link."
        : "The first round is over, the second has not begun. Come back later with the same link.",
    "other-round": passed
      ? `Your turn was round ${own}, which is over. There is nothing to do.`
      : `Nothing to do in this round: your turn is round ${own}. Come back then, with the same ` +
        "link and browser. A coin on this device chose; no answer was sent.",
    late:
      "Your answer was drawn, but no receipt for it came while the round was open. It is sent no " +
      "more.",
    ended: "This survey takes no more answers.",
  };
  show(null, "Nothing to do now", paragraph(texts[phase]));
}

function showTrouble(error, again) {
  if (error instanceof Refusal) {
    const why = el("p", { role: "alert", class: "warning" }, error.message);
    show(null, "This page refuses", why, paragraph("No answer was sent now."));
    return;
  }
  const known = error instanceof Unsent;
  const words = known ? error.message : "This page has an error of its own.";
  const retry = el("div", { class: "actions" }, button("Try again", again, { primary: true }));
  show(null, "Not now", el("p", { role: "alert" }, words), retry);
  if (!known) throw error;
}

async function showFooter() {
  const view = [];
  try {
    const forgotten = (name) => (name === device?.name ? location.reload() : showFooter());
    view.push(await ledgerView(shelf ?? (await Shelf.open()), forgotten));
  } catch {
    // a browser that keeps nothing has nothing to show
  }
  const open = byId("footer").querySelector("details")?.open ?? false;
  byId("footer").replaceChildren(...view, aboutPage(asked));
  byId("footer").querySelector("details").open = open;
}

function aboutPage(plan) {
  const digest = device?.announcement?.page;
  return folded(
    "How to check this page",
    paragraph(
      "The page is one file, the same from every server with this version of sfumato. Save it, and " +
        "compare its SHA-256 with the one in sfumato’s documentation; opened from your disk it works as well, with ",
      el("code", {}, "#server=…"),
      " in its address. A server could hand out another page that looks like this one.",
    ),
    digest ? paragraph("The survey says that its page is ", hash(digest), ".") : null,
    device?.link ? paragraph("Key of this survey: ", hash(keyShown()), ".") : null,
    device?.hash ? hashParagraph(plan) : null,
  );
}

/** What others can compare: that everybody is shown this very survey, and asked by this plan. */
function hashParagraph(plan) {
  const checked = device.link.hash === null ? "your link holds none" : "checked: it is in your link";
  const first = plan?.round === 1;
  const round = first ? " It covers the questions of the first round." : "";
  const own =
    plan && !first ? [" Hash of the questions of this round: ", hash(plan.id), "."] : [round];
  return paragraph("Hash of this survey (", checked, "): ", hash(device.hash), ".", ...own,
    " The owner publishes this; if yours differs from others’, your answer may be marked.");
}

function hash(text) {
  return el("code", { class: "hash" }, text);
}

function keyShown() {
  return device.kept?.key ?? device.link.key ?? "not seen yet";
}

addEventListener("hashchange", () => location.reload());
start();
