// Draws many answers with given random words; run as node draws.mjs SOURCE, the task on stdin.
//
// The task is a line of JSON, then the words as bytes: {"protocol", "epsilon", "categories",
// "code", "draws"} for one mechanism, {"agreement", "plan", "codes", "draws"} for whole devices.
// Prints a JSON object: how often each answer came.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(new URL(name, pathToFileURL(`${process.argv[2]}/`)));
const { Words, fraction } = await load("exact.js");
const { PROTOCOLS } = await load("mechanisms.js");
const { readAgreement, readPlan } = await load("messages.js");
const { Client } = await load("client.js");
const { parse } = await load("text.js");

const input = readFileSync(0);
const end = input.indexOf("\n");
const task = JSON.parse(input.subarray(0, end).toString());
const listed = new BigUint64Array(Uint8Array.from(input.subarray(end + 1)).buffer);
let place = 0;
const words = new Words((n) => {
  place += n;
  if (place > listed.length) throw new Error("too few words");
  return Array.from(listed.subarray(place - n, place));
});

async function drawing() {
  if (task.protocol) {
    const mechanism = new PROTOCOLS[task.protocol](task.categories, fraction(task.epsilon));
    return () => mechanism.answer(task.code, words);
  }
  const agreed = await readAgreement(parse(task.agreement));
  const plan = await readPlan(parse(task.plan), agreed);
  return () => new Client(agreed, words).answer(plan, task.codes).answer;
}

const draw = await drawing();
const counts = {};
for (let i = 0; i < task.draws; i += 1) {
  const answer = String(draw());
  counts[answer] = (counts[answer] ?? 0) + 1;
}
process.stdout.write(JSON.stringify(counts));
