// The page: what a survey is, what it promises, the questions, what will leave, the receipt.

import { Device, Unsent, allKept, readLink } from "./device.js";
import { button, card, el, folded, paragraph, said } from "./dom.js";
import { leavingCard, oddsCard, promiseCard, questionOf } from "./explained.js";
import { field } from "./inputs.js";
import { hourText, ledgerView } from "./ledger.js";
import { Shelf } from "./shelf.js";
import { Refusal } from "./text.js";

const ADDS_UP =
  "This browser has answered the same questions before, in another survey. Both add up.";
const byId = (id) => document.getElementById(id);

let device = null;
let shelf = null;

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
      "signatures. " +
        "Nothing was answered. Open it by https, or save it and open it from your disk.",
    );
  }
}

/** From now on the page can reach this one server and no other: policies only ever add up. */
function allowOnly(server) {
  const content = `connect-src ${new URL(server).origin}`;
  document.head.append(el("meta", { "http-equiv": "Content-Security-Policy", content }));
}

async function proceed() {
  const now = { ...(await device.look()), before: await answeredBefore() };
  const views = { answer: showAbout, send: showKept, sent: showReceipt };
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
  const { text, agreement, minimum } = device.announcement;
  const owner = text ? el("p", { class: "owner said", dir: "auto" }, text) : null;
  const go = button("Answer the questions", () => showQuestions(now), { primary: true, id: "go" });
  const fewest = `Nobody is shown an estimate from fewer than ${minimum} answers.`;
  const least = minimum > 1n ? el("p", { class: "soft" }, fewest) : null;
  show(
    0,
    "What this is",
    owner,
    now.before ? el("p", { class: "warning" }, ADDS_UP) : null,
    promiseCard(agreement),
    oddsCard(now.plan, device.announcement),
    least,
    el("div", { class: "actions" }, go),
  );
}

/** Whether this browser has answered a survey with the same columns under another name. */
async function answeredBefore() {
  const { agreement } = device.announcement;
  return (await allKept(shelf)).some(({ name, kept }) => {
    const answered = kept !== null && Object.keys(kept.uploads).length > 0;
    return answered && name !== device.name && kept.client.survey === agreement.id;
  });
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
      await device.draw(now.plan, codes, { remember: remember?.box.checked ?? false });
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
    "This answer was drawn earlier and has not arrived yet. It is sent as it is: no other is " +
    "drawn.";
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
    el("h3", {}, `The very bytes: ${bytes}, and nothing else`),
    el("p", { class: "soft" }, `POST ${device.link.server}/v1/surveys/${device.link.task}/answers`),
    el("pre", { id: "body", tabindex: 0 }, body),
    paragraph(
      "The server also sees your network address, as with every page. Please don’t decide by what " +
        "was drawn whether to send it: a choice that depends on it would tell something, too.",
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

function showUnsent(now) {
  show(
    2,
    "Not sent",
    paragraph(
      "Nothing has left this device. What was drawn is kept: if you come back, the same answer " +
      "is shown " +
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
        "link and browser. A coin on this device chose; nothing was sent to the server.",
    late: "Your answer was drawn but not sent while the round was open. It stays here, uncounted.",
    ended: "This survey takes no more answers.",
  };
  show(null, "Nothing to do now", paragraph(texts[phase]));
}

function showTrouble(error, again) {
  if (error instanceof Refusal) {
    const why = el("p", { role: "alert", class: "warning" }, error.message);
    show(null, "This page refuses", why, paragraph("Nothing was sent."));
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
  byId("footer").replaceChildren(...view, aboutPage());
  byId("footer").querySelector("details").open = open;
}

function aboutPage() {
  const digest = device?.announcement?.page;
  return folded(
    "How to check this page",
    paragraph(
      "The page is one file, the same from every server. Save it, and compare its SHA-256 with " +
      "the one in " +
        "sfumato’s documentation; opened from your disk it works as well, with ",
      el("code", {}, "#server=…"),
      " in its address. A server could hand out another page that looks like this one.",
    ),
    digest ? paragraph("The survey says that its page is ", hash(digest), ".") : null,
    device?.link ? paragraph("Key of this survey: ", hash(keyShown()), ".") : null,
  );
}

function hash(text) {
  return el("code", { class: "hash" }, text);
}

function keyShown() {
  return device.kept?.key ?? device.link.key ?? "not seen yet";
}

addEventListener("hashchange", () => location.reload());
start();
