// A conversation: its messages by role, with calls of tools as formatted JSON.
import { block, copyButton, el, number, seconds, visible } from "./text.js";

const ROLES = new Set(["system", "user", "assistant", "tool", "developer"]);
const FOLDED = 1500;

/** The messages of a conversation, with what each model call took. */
export function messagesOf(said) {
  const calls = [...(said.calls ?? [])];
  const list = el("ol", "messages");
  for (const message of said.messages ?? []) {
    const usage = message.role === "assistant" ? calls.shift() : null;
    list.append(messageOf(message, usage));
  }
  if (said.left_out)
    list.prepend(el("li", "soft", `${said.left_out} messages of its middle are left out`));
  return list;
}

function messageOf(message, usage) {
  const role = String(message.role ?? "?");
  const head = el("p", "role", el("span", "who", role), message.name ? ` ${message.name}` : "");
  if (usage) head.append(el("span", "soft usage", usageOf(usage)));
  head.append(copyButton(`Copy this message of ${role}`, () => copyOf(message)));
  const parts = contentOf(message.content, role);
  if (message.reasoning_content)
    parts.unshift(folded("reasoning", String(message.reasoning_content)));
  for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : [])
    parts.push(callOf(call));
  return el("li", `message ${ROLES.has(role) ? role : "other"}`, head, ...parts);
}

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

function contentOf(content, role) {
  if (content === null || content === undefined || content === "") return [];
  if (Array.isArray(content)) return content.flatMap((part) => partOf(part, role));
  return [textOf(String(content), role)];
}

function partOf(part, role) {
  if (typeof part === "string") return [textOf(part, role)];
  if (typeof part?.text === "string") return [textOf(part.text, role)];
  return [jsonBlock(part)];
}

function textOf(text, role) {
  if (role === "tool" && /^\s*[[{]/.test(text)) {
    const value = parsed(text);
    if (value !== undefined) return jsonBlock(value);
  }
  return role === "system" && text.length > FOLDED ? folded(`${line0(text)}…`, text) : block(text);
}

function line0(text) {
  return text.slice(0, 120).replace(/\s+/g, " ");
}

function folded(title, text) {
  return el("details", "", el("summary", "", title), block(text));
}

function callOf(call) {
  const asked = call?.function ?? call ?? {};
  const value = typeof asked.arguments === "string" ? parsed(asked.arguments) : asked.arguments;
  const shown =
    value === undefined ? block(String(asked.arguments ?? ""), "text json") : jsonBlock(value);
  return el("div", "call", el("p", "tool", "→ ", el("code", "", String(asked.name ?? "?"))), shown);
}

const SHORT = 72;

function jsonBlock(value) {
  const whole = JSON.stringify(value, null, 2) ?? "";
  const flat = whole.replace(/\n\s*/g, " ");
  return block(flat.length <= SHORT ? flat : whole, "text json");
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
