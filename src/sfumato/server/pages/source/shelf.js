// The shelf: one text for each survey, in a database of this browser that all its tabs share.
//
// A change reads and writes in one transaction, and the browser lets one tab in at a time. Storage
// without transactions (localStorage) does not promise that one tab sees what another has written.

import { Refusal } from "./text.js";

const DATABASE = "sfumato surveys";
const TEXTS = "texts";

/** Texts by name. */
export class Shelf {
  constructor(database) {
    this.database = database;
  }

  /** The shelf of this page's origin. */
  static async open() {
    const database = await made((resolve, reject) => {
      const asked = indexedDB.open(DATABASE, 1);
      asked.addEventListener("upgradeneeded", () => asked.result.createObjectStore(TEXTS));
      asked.addEventListener("success", () => resolve(asked.result));
      asked.addEventListener("error", reject);
    });
    return new Shelf(database);
  }

  /** The text under a name, null if there is none. */
  async read(name) {
    return (await this.within("readonly", (texts) => texts.get(name))) ?? null;
  }

  /** All names with their texts, by name. */
  async all() {
    const names = await this.within("readonly", (texts) => texts.getAllKeys());
    return Promise.all(names.map(async (name) => [name, await this.read(name)]));
  }

  /**
   * Put what `action` makes of the text under a name (null if there is none) in its place, unless
   * that is null; no tab comes between. What it throws is thrown, and nothing is changed.
   */
  async change(name, action) {
    let thrown = null;
    const changed = (texts) => {
      const asked = texts.get(name);
      asked.addEventListener("success", () => {
        try {
          const text = action(asked.result ?? null);
          if (text !== null) texts.put(text, name);
        } catch (error) {
          thrown = error;
          texts.transaction.abort();
        }
      });
      return asked;
    };
    try {
      await this.within("readwrite", changed);
    } catch (error) {
      throw thrown ?? error;
    }
  }

  async remove(name) {
    await this.within("readwrite", (texts) => texts.delete(name));
  }

  /** What a request gave, once the transaction that it is in is on the disk. */
  within(mode, ask) {
    return made((resolve, reject) => {
      const transaction = this.database.transaction(TEXTS, mode, { durability: "strict" });
      transaction.addEventListener("abort", reject);
      const asked = ask(transaction.objectStore(TEXTS));
      transaction.addEventListener("complete", () => resolve(asked.result));
    });
  }
}

/** A promise that fails in words for the person, whatever the browser's reason was. */
async function made(begin) {
  try {
    return await new Promise(begin);
  } catch {
    throw noStorage();
  }
}

/** Without a memory the page does nothing. */
export function noStorage() {
  return new Refusal(
    "This browser keeps nothing for this page (a private window?), so the page could not repeat " +
      "its answer and would have to draw another one.",
  );
}
