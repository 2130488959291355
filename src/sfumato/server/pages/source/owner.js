// The owner's page: a token opens it, stays in this tab only, and goes to this server only.

import { complain, confirmed, copyButton, download, el, facts, field, say, whole } from "./owner-dom.js";
import { newSurveyForm, newTokens } from "./owner-new.js";
import { actionsOf, countsSection, estimateCards, fakesCards, invitationForm, planCards, stateText, stepsOf } from "./owner-views.js";

const TOKEN = "sfumato-owner-token";
const REFRESH_MS = 5_000;
const main = document.getElementById("main");
const view = { access: null, task: null, timer: 0, seen: "" };

/** A request with the token; a refusal becomes an error with the server's own words. */
async function ask(path, body, token = sessionStorage.getItem(TOKEN)) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit" });
  } catch {
    throw new Error("The server does not answer. What was asked may have been done all the same: look again.");
  }
  if (reply.headers.get("content-type") === "application/zip") return reply.arrayBuffer();
  const told = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(sentence(told.error, reply.status)), { status: reply.status });
  return told;
}

function sentence(text, status) {
  if (!text) return `The server refused this (${status}).`;
  return text[0].toUpperCase() + text.slice(1);
}

/** Do something and say what went wrong, if so. */
async function trying(work) {
  try {
    return await work();
  } catch (error) {
    complain(error.message);
    return null;
  }
}

function show(title, about, ...sections) {
  clearTimeout(view.timer);
  document.getElementById("title").textContent = title;
  document.title = `${title} · sfumato`;
  document.getElementById("about").replaceChildren(...about.map((text) => el("span", { text })));
  main.replaceChildren(...sections.flat().filter(Boolean));
  const out = el("button", { type: "button", class: "link", text: "Log out", onclick: logOut });
  const all = view.access?.role === "server" && el("button", { type: "button", class: "link", text: "All surveys", onclick: showAll });
  document.getElementById("nav").replaceChildren(...(view.access ? [all, out].filter(Boolean) : []));
}

function logOut() {
  sessionStorage.removeItem(TOKEN);
  Object.assign(view, { access: null, task: null });
  showLogin();
}

function showLogin() {
  const token = el("input", { type: "password", required: true, autocomplete: "off", spellcheck: "false", pattern: "\\s*[0-9a-f]{48}\\s*", title: "48 hexadecimal digits" });
  const form = el("form", { class: "card" }, field("Token", token, "Of the server, to make surveys; of an owner, to run one; of a reader, to look. It stays in this tab until you close it."),
    el("div", { class: "buttons" }, el("button", { text: "Open" })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    logIn(token.value.trim());
  });
  show("Your survey", ["for those who run one"], form);
  token.focus();
}

async function logIn(token) {
  const access = await trying(() => ask("/v1/access", undefined, token));
  if (!access) return false;
  sessionStorage.setItem(TOKEN, token);
  view.access = access;
  await (access.role === "server" ? showAll() : showSurvey(access.surveys[0].task));
  return true;
}

async function showAll() {
  view.task = null;
  const access = await trying(() => ask("/v1/access"));
  if (!access) return;
  view.access = access;
  const listed = access.surveys.map((survey) => el("li", {},
    el("button", { type: "button", class: "link", dir: "auto", text: survey.title, onclick: () => showSurvey(survey.task) }),
    el("span", { text: stateText(survey.state) })));
  const surveys = listed.length ? el("ul", { class: "surveys card" }, listed) : el("p", { class: "card quiet", text: "There are no surveys yet." });
  show("Surveys", [`${whole(listed.length)} on this server`], surveys, el("h2", { text: "A new survey" }), newSurveyForm(create));
}

async function create(wanted) {
  const made = await trying(() => ask("/v1/surveys", wanted));
  if (!made) return;
  show(wanted.title, ["made just now"], newTokens(made, () => showSurvey(made.task)));
  main.focus();
}

async function showSurvey(task) {
  view.task = task;
  view.seen = "";
  const announced = await trying(() => ask(`/v1/surveys/${task}`));
  if (!announced) return;
  const status = await trying(() => ask(`/v1/surveys/${task}/status`));
  if (!status) return;
  const survey = JSON.parse(announced.survey.payload);
  const parts = sections(survey, announced.key, status);
  const rounds = survey.agreement.variant === "single" ? 1 : 2;
  show(survey.title, [`epsilon ${survey.agreement.epsilon} for each person`, rounds === 2 ? "two rounds" : "one round", `${survey.agreement.columns.length} questions`, ...(survey.rehearsal ? ["a rehearsal: not a real survey"] : [])], parts.all);
  await refresh(task, { ...parts, survey, rounds });
}

function sections(survey, key, { survey_hash: hash }) {
  const may = view.access.role !== "reader";
  const named = (name, title) => el("section", { id: name, "aria-labelledby": `${name}-title` }, el("h2", { id: `${name}-title`, text: title }));
  const [state, plan, estimates, fakes] = [el("div"), el("div"), el("div"), el("div")];
  const link = (token) => personLink(survey, key, hash, token);
  const people = el("div", { class: "card" },
    facts({ "Page for people": el("a", { href: link(null), target: "_blank", rel: "noopener", text: "see it as people do" }), "Its SHA-256": el("span", { class: "mono", text: survey.page || "this server hands out none" }), "Key that signs this survey": el("span", { class: "mono", text: key }), "Hash of this survey": el("span", { class: "mono", text: hash }) }),
    el("p", { class: "hint", text: "The hash covers all that people are shown, and the questions of the first round. It is in every link, and people’s devices refuse another one. Print it beside the page’s SHA-256: then people can also see that they all got the same." }),
    pageCheck(survey.page),
    survey.invited ? null : el("p", {}, "Whoever has this link can answer: ", el("code", { text: link(null) }), " ", copyButton(link(null))));
  const invite = (wanted) => trying(async () => (await ask(`/v1/surveys/${survey.task}/invitations`, wanted)).tokens);
  const inviting = el("div", {}, may && survey.invited ? [el("h3", { text: "Invite" }), ...invitationForm(link, invite)] : null);
  people.append(inviting);
  const all = [
    append(named("state", "Where it stands"), state), append(named("people", "People"), people),
    append(named("estimates", "Estimates"), estimates), append(named("plan", "The plan"), plan),
    append(named("fakes", "Fake answers"), fakes),
  ];
  return { all, state, plan, estimates, fakes, inviting, may };
}

function append(parent, child) {
  parent.append(child);
  return parent;
}

function personLink(survey, key, hash, token) {
  const parts = { survey: survey.task, key, hash, token };
  const fragment = Object.entries(parts).filter(([, text]) => text).map(([name, text]) => `${name}=${encodeURIComponent(text)}`);
  return `${location.origin}/answer#${fragment.join("&")}`;
}

/** Whether the page that this server hands out now is the announced one, if the browser can tell. */
function pageCheck(announced) {
  const place = el("p", { class: "hint" });
  if (!announced || !globalThis.crypto?.subtle) return place;
  fetch("/answer", { cache: "no-store", credentials: "omit" }).then((reply) => reply.arrayBuffer()).then(async (bytes) => {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    place.textContent = found === announced
      ? "Checked just now: the server hands this page out. Print the hash where people can compare it."
      : "The server hands out ANOTHER page than the survey announced. Don't invite people before you know why.";
  }).catch(() => {});
  return place;
}

async function refresh(task, shown) {
  if (view.task !== task) return;
  const path = `/v1/surveys/${task}`;
  if (document.visibilityState === "visible") {
    const status = await ask(`${path}/status`).catch((error) => (complain(error.message), null));
    if (view.task !== task) return;
    const seen = status && JSON.stringify([status.state, status.answers, status.arrivals, hourNow()]);
    if (status && seen !== view.seen) {
      view.seen = seen;
      replaced(shown.state, [stateCard(task, status, shown)]);
      shown.inviting.hidden = ["released", "abandoned"].includes(status.state);
      await fillAll(path, status, shown);
    }
  }
  if (view.task === task) view.timer = setTimeout(() => refresh(task, shown), REFRESH_MS);
}

/** What is shown of an open round is refreshed by the hour. */
function hourNow() {
  return new Date().toISOString().slice(0, 13);
}

async function fillAll(path, status, shown) {
  const names = shown.survey.agreement.columns.map((column) => column.name);
  const estimates = (told) => {
    if (JSON.stringify(told.counts) !== JSON.stringify(status.answers)) view.seen = ""; // an older look: ask again
    return estimateCards(told);
  };
  const early = earlyText(status);
  if (early) shown.estimates.replaceChildren(el("p", { class: "card quiet", text: early }));
  await Promise.all([
    fill(shown.plan, `${path}/plans`, (told) => planCards(told.plans, names, status.plans)),
    fill(shown.fakes, `${path}/poisoning`, fakesCards),
    early ? null : fill(shown.estimates, `${path}/estimates`, estimates),
  ]);
}

/** Why there can be no estimate yet; empty if there may be some. */
function earlyText({ state, minimum, answers, rehearsal }) {
  const least = whole(minimum);
  if (state === "abandoned") return "Nothing is estimated: the survey was given up.";
  if (rehearsal) return answers[1] >= minimum ? "" : `Not yet: no estimate is shown from fewer than ${least} answers.`;
  if (!["created", "open-1"].includes(state) || answers[1] >= 2 * minimum) return "";
  return `Not yet: no estimate is shown from fewer than ${least} answers. While the round is open, one is shown when ${least} more have come after them, by the hour; when it is closed, at once.`;
}

/** Fill a section from the server. */
async function fill(place, path, made) {
  let content;
  try {
    content = made(await ask(path));
  } catch (error) {
    content = [el("p", { class: "card quiet", text: error.message })]; // "not yet", or given up
  }
  replaced(place, content);
}

/** New content in the place of old; what was open or had the focus stays so, known by its text. */
function replaced(place, content) {
  const open = new Set([...place.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  const focused = place.contains(document.activeElement) ? document.activeElement.textContent : null;
  place.replaceChildren(...content.flat().filter(Boolean));
  for (const summary of place.querySelectorAll("summary")) if (open.has(summary.textContent)) summary.parentElement.open = true;
  for (const each of place.querySelectorAll("button, summary")) if (each.textContent === focused) each.focus();
}

function stateCard(task, status, shown) {
  const buttons = shown.may ? actionsOf(status, shown.rounds).map((action) => actionButton(task, action, shown)) : [];
  const hints = shown.may ? actionsOf(status, shown.rounds).map((action) => action.hint).filter(Boolean) : [];
  const released = status.state === "released" ? [el("button", { type: "button", text: "Save the release (zip)", onclick: () => save(task) })] : [];
  return el("div", { class: "card" }, stepsOf(status.state, shown.rounds),
    status.state === "abandoned" ? el("p", { text: "This survey was given up. Nothing is estimated or released." }) : null,
    ...countsSection(status, shown.rounds),
    el("div", { class: "buttons" }, buttons, released), hints.map((text) => el("p", { class: "hint", text })),
    shown.may ? null : el("p", { class: "hint", text: "This token may look, and no more." }));
}

function actionButton(task, action, shown) {
  const button = el("button", { type: "button", class: action.risk ? "risk" : null, text: action.label });
  button.addEventListener("click", async () => {
    if (action.title && !(await confirmed(action.title, action.text, action.label))) return;
    button.disabled = true;
    const done = await trying(() => ask(`/v1/surveys/${task}/${action.path}`, action.body));
    if (done) say(`Done: ${stateText(done.state)}.`);
    view.seen = "";
    clearTimeout(view.timer);
    await refresh(task, shown);
  });
  return button;
}

async function save(task) {
  const archive = await trying(() => ask(`/v1/surveys/${task}/release.zip`));
  if (archive) download("release.zip", archive, "application/zip");
}

document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && view.task && (view.seen = ""));
async function start() {
  const kept = sessionStorage.getItem(TOKEN);
  if (!kept || !(await logIn(kept))) logOut();
}

start();
