// A conversation: its turns numbered, Markdown rendered or as it came, JSON as trees, long results folded.
import { jsonTree, parsed } from "./json.js";
import { markdown } from "./markdown.js";
import { block, button, copyButton, el, number, seconds, visible } from "./text.js";

const ROLES = new Set(["system", "user", "assistant", "tool", "developer"]);
const FOLDED = 1500;
const RENDERED = 100_000;
const LINES = 3;
const WIDE = 110;

/**
 * The messages of a conversation, with what each model call took; `isRaw`: no Markdown, no trees.
 * The last one is not repeated where it is the answer that is shown already.
 */
export function messagesOf(said, isRaw, answer) {
  const calls = [...(said.calls ?? [])];
  const list = el("ol", "messages");
  let turn = 0;
  for (const message of said.messages ?? []) {
    const isTurn = message.role === "assistant";
    const found = messageOf(message, isTurn ? calls.shift() : null, isTurn ? ++turn : 0, isRaw);
    if (isTurn && answer && message === said.messages.at(-1) && message.content === answer)
      found.querySelector(":scope > .text, :scope > .rendered").replaceWith(el("p", "soft", "the answer above"));
    list.append(found);
  }
  if (said.left_out)
    list.prepend(el("li", "soft", `${said.left_out} messages of its middle are left out`));
  return list;
}

function messageOf(message, usage, turn, isRaw) {
  const role = String(message.role ?? "?");
  const head = el("p", "role", el("span", "who", role), message.name ? ` ${message.name}` : "");
  if (turn) head.append(el("span", "soft", `turn ${turn}`));
  if (usage) head.append(el("span", "soft usage", usageOf(usage)));
  head.append(copyButton(`Copy this message of ${role}`, () => copyOf(message)));
  const parts = contentOf(message.content, role, isRaw);
  if (message.refusal) parts.push(textOf(`(refusal) ${message.refusal}`, role, isRaw));
  if (message.reasoning_content)
    parts.unshift(folded("reasoning", String(message.reasoning_content)));
  for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : [])
    parts.push(callOf(call, isRaw));
  const found = el("li", `message ${ROLES.has(role) ? role : "other"}`, head, ...parts);
  TEXTS.set(found, JSON.stringify(message).toLowerCase());
  return found;
}

const TEXTS = new WeakMap();

function usageOf(usage) {
  const parts = [];
  if (usage.prompt_tokens != null) parts.push(`${number(usage.prompt_tokens)} in`);
  if (usage.completion_tokens != null) parts.push(`${number(usage.completion_tokens)} out`);
  if (usage.latency_ms != null) parts.push(seconds(usage.latency_ms));
  if (usage.retries) parts.push(`${usage.retries} retries`);
  if (usage.finish_reason && !["stop", "tool_calls"].includes(usage.finish_reason))
    parts.push(usage.finish_reason);
  return parts.join(" · ");
}

function contentOf(content, role, isRaw) {
  if (content === null || content === undefined || content === "") return [];
  if (Array.isArray(content)) return content.flatMap((part) => partOf(part, role, isRaw));
  return [textOf(String(content), role, isRaw)];
}

function partOf(part, role, isRaw) {
  if (typeof part === "string") return [textOf(part, role, isRaw)];
  if (typeof part?.text === "string") return [textOf(part.text, role, isRaw)];
  return [jsonTree(part)];
}

function textOf(text, role, isRaw) {
  if (role === "tool") return toolResult(text, isRaw);
  const shown = () =>
    isRaw || text.length > RENDERED ? block(text) : el("div", "rendered", ...markdown(text));
  if (role !== "system" || text.length <= FOLDED) return shown();
  return el("details", "", el("summary", "", `${text.slice(0, 120).replace(/\s+/g, " ")}…`), shown());
}

/** What a tool gave: a tree where it is JSON, else its first lines until all are asked for. */
function toolResult(text, isRaw) {
  const value = !isRaw && /^\s*[[{]/.test(text) ? parsed(text) : undefined;
  if (value !== undefined) return jsonTree(value, false);
  const lines = text.split("\n");
  const head = lines.slice(0, LINES).join("\n").slice(0, LINES * WIDE);
  if (head.length >= text.trimEnd().length) return block(text, "text result");
  const more = lines.length > LINES ? `${number(lines.length)} lines` : `${number(text.length)} characters`;
  const found = el("div", "cut", block(`${head} …`, "text result"));
  const all = button(`Show all ${more}`, "Show the whole result", () => {
    const isAll = found.classList.toggle("whole");
    found.firstChild.replaceWith(isAll ? block(text, "text result") : block(`${head} …`, "text result"));
    all.textContent = isAll ? "Show less" : `Show all ${more}`;
    all.setAttribute("aria-expanded", isAll);
  });
  all.classList.add("more");
  all.removeAttribute("aria-label");
  all.setAttribute("aria-expanded", false);
  found.append(all);
  return found;
}

function folded(title, text) {
  return el("details", "", el("summary", "", title), block(text));
}

function callOf(call, isRaw) {
  const asked = call?.function ?? call ?? {};
  const given = asked.arguments;
  const value = typeof given === "string" ? parsed(given) : given;
  const shown =
    value === undefined || (isRaw && typeof given === "string")
      ? block(String(given ?? ""), "text json")
      : jsonTree(value);
  return el("div", "call", el("p", "tool", "→ ", el("code", "", String(asked.name ?? "?"))), shown);
}

function copyOf(message) {
  return typeof message.content === "string" && !message.tool_calls
    ? message.content
    : JSON.stringify(message, null, 2);
}

/** The whole conversation as text to paste elsewhere. */
export function plainText(said) {
  return (said.messages ?? [])
    .map((message) => `${message.role}: ${visible(copyOf(message))}`)
    .join("\n\n");
}

const MOST_OPEN = 500;

/** Open or close all that folds in a conversation; of very much, the first parts. */
export function foldAll(list, isOpen) {
  for (const more of list.querySelectorAll(".cut > .more"))
    if (more.parentElement.classList.contains("whole") !== isOpen) more.click();
  for (let opened = 0; opened < MOST_OPEN; opened++) {
    const next = list.querySelector(isOpen ? "details:not([open])" : "details[open]");
    if (!next) return;
    next.open = isOpen;
    next.dispatchEvent(new Event("toggle"));
  }
}

/** Show the messages that hold a text, with its places marked; return how many do. */
export function searchIn(list, text) {
  const wanted = text.trim().toLowerCase();
  let count = 0;
  for (const message of list.querySelectorAll(".message")) {
    const isThere =
      !wanted || TEXTS.get(message).includes(wanted) || message.textContent.toLowerCase().includes(wanted);
    message.hidden = !isThere;
    if (wanted && isThere) {
      count++;
      foldAll(message, true);
    }
  }
  markPlaces(list, wanted);
  return count;
}

function markPlaces(list, wanted) {
  if (typeof Highlight === "undefined") return; // an older browser: the messages alone are chosen
  const ranges = [];
  const texts = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  for (let text = wanted && texts.nextNode(); text && ranges.length < MOST_OPEN; text = texts.nextNode()) {
    const low = text.data.toLowerCase();
    if (low.length !== text.data.length) continue;
    for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(text, at);
      range.setEnd(text, at + wanted.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
