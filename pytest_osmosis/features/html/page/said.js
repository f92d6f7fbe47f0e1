// What was said in runs, as text to search: read once, when it is first wanted.
import { conversationOf, inflated, page } from "./data.js";

const AT_ONCE = 8;
const UNSAID = new Set(["role", "type", "id", "tool_call_id"]);

/** Whether the conversations of the page can be searched: one that changes is never read whole. */
export function isSearchable() {
  return !page.events && Boolean(page.parts[0] || page.conversations);
}

/** Read the conversations of runs; `tell` is called with the share that is read. */
export async function readSaid(runs, tell) {
  let done = 0;
  for (const [part, those] of grouped(runs)) {
    if (part >= 0) await readPart(part, those);
    else await readServed(those, (number) => tell((done + number) / runs.length));
    done += those.length;
    tell(done / runs.length);
  }
}

function heldIn(run) {
  return run.at ? run.at[0] : -1;
}

function grouped(runs) {
  const found = new Map();
  for (const run of runs) {
    if (!found.has(heldIn(run))) found.set(heldIn(run), []);
    found.get(heldIn(run)).push(run);
  }
  return found;
}

async function readPart(part, runs) {
  const held = JSON.parse(await inflated(page.parts[part]));
  for (const run of runs) run.said = wholeText(held[run.at[1]]);
}

async function readServed(runs, tell) {
  for (let at = 0; at < runs.length; at += AT_ONCE) {
    const some = runs.slice(at, at + AT_ONCE);
    const found = await Promise.all(some.map(conversationOf));
    some.forEach((run, place) => (run.said = wholeText(found[place])));
    tell(at);
  }
}

/** All that stands in a conversation, the traceback too, in small letters. */
function wholeText(said) {
  const found = [];
  const take = (value) => {
    if (typeof value === "string") found.push(value);
    else if (Array.isArray(value)) value.forEach(take);
    else if (value && typeof value === "object")
      for (const [name, each] of Object.entries(value)) if (!UNSAID.has(name)) take(each);
  };
  take([said?.messages ?? [], said?.frames ?? ""]);
  return found.join("\n").toLowerCase();
}
