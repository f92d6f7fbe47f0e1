// JSON as a tree that folds. Numbers stand there with the digits that they have in the text.
import { block, button, el } from "./text.js";

const SHORT = 72;
const ENTRIES = 100;
const LONG_VALUE = 2_000;

class Digits {
  constructor(source) {
    this.source = source;
  }
}

/** What a text of JSON holds; undefined where it is none. */
export function parsed(text) {
  try {
    return JSON.parse(text, (_, value, context) =>
      typeof value === "number" && context && String(value) !== context.source
        ? new Digits(context.source)
        : value,
    );
  } catch {
    return undefined;
  }
}

/** A value as nodes: on one line where it is short, else a tree with its first level open. */
export function jsonTree(value, isOpen = true) {
  const short = flat(value, SHORT);
  return el("div", "text json", ...(short.length <= SHORT ? leaf(value, short) : [branch(value, "", isOpen)]));
}

function isHolder(value) {
  return typeof value === "object" && value !== null && !(value instanceof Digits);
}

function entriesOf(value) {
  return Array.isArray(value) ? value.map((each) => [null, each]) : Object.entries(value);
}

/** A value on one line, given up where it is longer than `most`. */
function flat(value, most) {
  if (value instanceof Digits) return value.source;
  if (!isHolder(value)) return JSON.stringify(value);
  let text = Array.isArray(value) ? "[" : "{ ";
  let isFirst = true;
  for (const [name, each] of entriesOf(value).slice(0, most)) {
    if (text.length > most) return text;
    text += `${isFirst ? "" : ", "}${name === null ? "" : `${JSON.stringify(name)}: `}`;
    text += flat(each, most - text.length);
    isFirst = false;
  }
  if (isFirst) return Array.isArray(value) ? "[]" : "{}";
  return text + (Array.isArray(value) ? "]" : " }");
}

function leaf(value, short) {
  const isNumber = value instanceof Digits || typeof value === "number";
  const other = isHolder(value) ? "" : "word";
  const kind = typeof value === "string" ? "string" : isNumber ? "digits" : other;
  return [short.length > LONG_VALUE ? block(short, kind) : el("span", kind, short)];
}

function titleOf(name) {
  return name === "" ? [] : [el("span", "key", name), ": "];
}

/** A list or an object that folds; what is in it is made when it opens. */
function branch(value, name, isOpen) {
  const count = entriesOf(value).length;
  const [left, right, noun] = Array.isArray(value) ? ["[", "]", "item"] : ["{", "}", "key"];
  const preview = flat(value, SHORT).slice(0, SHORT);
  const summary = el("summary", "", ...titleOf(name), el("span", "soft", `${left}${right} ${count} ${noun}${count === 1 ? "" : "s"} `), el("span", "preview", `${preview} …`));
  const found = el("details", "tree", summary);
  const fill = () => {
    if (found.open && found.childElementCount === 1) fillWith(found, entriesOf(value), Array.isArray(value));
  };
  found.addEventListener("toggle", fill);
  found.open = isOpen;
  fill();
  return found;
}

function fillWith(found, entries, isList, from = 0) {
  for (const [place, [name, each]] of entries.slice(from, from + ENTRIES).entries()) {
    const title = isList ? String(from + place) : JSON.stringify(name);
    const short = flat(each, SHORT);
    found.append(
      isHolder(each) && short.length > SHORT
        ? branch(each, title, false)
        : el("div", "leaf", ...titleOf(title), ...leaf(each, short)),
    );
  }
  const left = entries.length - from - ENTRIES;
  if (left <= 0) return;
  const more = button(`${Math.min(left, ENTRIES)} more of ${left}`, "Show more", () => {
    more.remove();
    fillWith(found, entries, isList, from + ENTRIES);
  });
  found.append(more);
}
