// What this browser has told so far: a list of surveys, each of which can be forgotten.

import { allKept } from "./device.js";
import { button, el, folded, paragraph, said } from "./dom.js";

/** The list; `forgotten(name)` is called after a survey was deleted. */
export async function ledgerView(shelf, forgotten) {
  const kept = await allKept(shelf);
  const intro = kept.length
    ? "This is kept in this browser and sent nowhere. Whoever uses this browser can see it."
    : "Nothing: this browser has kept nothing of any survey.";
  const items = kept.map((each) => entry(shelf, each, forgotten));
  const list = kept.length ? el("ul", { class: "told" }, ...items) : null;
  return folded("What this browser has told so far", paragraph(intro), list);
}

/** An hour as a receipt has it, for people. */
export function hourText(hour) {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d)Z$/.exec(hour);
  return found === null ? "unknown" : `${found[1]} ${found[2]}:00 UTC`;
}

function entry(shelf, { name, kept }, forgotten) {
  const about =
    kept === null
      ? [paragraph(`${name}: can’t be read.`)]
      : [
          paragraph(el("strong", {}, said(String(kept.title)))),
          el("p", { class: "hint" }, `${kept.server}, epsilon ${kept.epsilon}. ${told(kept)}`),
        ];
  return el("li", {}, ...about, forgetting(shelf, name, forgotten));
}

function told(kept) {
  const uploads = Object.entries(kept.uploads);
  if (!uploads.length) return "Nothing was told.";
  return uploads
    .map(([round, { receipt, refused = false }]) => {
      const unsent = refused ? "sent, not counted" : "drawn, no receipt";
      const state = receipt ? `sent, ${hourText(receipt.hour)}` : unsent;
      return `Round ${round}: ${state}.`;
    })
    .join(" ");
}

/** A button that asks once more before it deletes: what it deletes is the only memory of it. */
function forgetting(shelf, name, forgotten) {
  const place = el("div", { class: "forget" });
  const ask = () => {
    const yes = button("Delete for good", async () => {
      await shelf.remove(name);
      forgotten(name);
    });
    const no = button("Keep it", () => place.replaceChildren(first));
    const why =
      "Without this entry the browser can’t know that it has answered. If you answered this " +
      "survey " +
      "again, you would tell about yourself twice, and its promise would no longer hold.";
    place.replaceChildren(el("p", { class: "warning", role: "alert" }, why), yes, " ", no);
    no.focus();
  };
  const first = button("Delete …", ask);
  place.append(first);
  return place;
}
