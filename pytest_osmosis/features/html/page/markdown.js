// Markdown as elements: headings, lists, tables, quotes, code, emphasis and links.
// Elements are created and text goes into them as text nodes: HTML in it is shown, never parsed.
import { el, visible } from "./text.js";

const DEEPEST = 12;
const MOST_TEXT = 20_000;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?=\S)|[ \t]*$)/;
const ADDRESS = /https?:\/\/[^\s<>"'`\\]{1,2000}/iy;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

/** A text as elements; `depth` is how many lists and quotes it stands in. */
export function markdown(text, depth = 0) {
  const lines = text.split("\n");
  const found = [];
  let plain = [];
  const flush = () => {
    const words = plain.join("\n").trim();
    if (words) found.push(el("p", "", inline(words)));
    plain = [];
  };
  for (let at = 0; at < lines.length; ) {
    const taken = lines[at].trim() ? blockAt(lines, at, depth, plain.length > 0) : [null, at + 1];
    if (!taken) {
      plain.push(lines[at++]);
      continue;
    }
    flush();
    if (taken[0]) found.push(taken[0]);
    at = taken[1];
  }
  flush();
  return found;
}

/** The block that begins at a line, and the line after it; null where only text does. */
function blockAt(lines, at, depth, isInText) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return codeAt(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const words = (heading[2] ?? "").replace(/[ \t]+#+[ \t]*$/, "");
    return [el("p", `heading level-${heading[1].length}`, inline(words)), at + 1];
  }
  if (RULE.test(line)) return [el("hr"), at + 1];
  const table = tableAt(lines, at);
  if (table || depth >= DEEPEST) return table;
  if (QUOTE.test(line)) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end])) end++;
    const inner = lines.slice(at, end).map((each) => each.replace(QUOTE, ""));
    return [el("blockquote", "", ...markdown(inner.join("\n"), depth + 1)), end];
  }
  const item = ITEM.exec(line);
  if (!item || (isInText && /\d/.test(item[2]) && Number.parseInt(item[2]) !== 1)) return null;
  return listAt(lines, at, item, depth);
}

function codeAt(lines, at, [, indent, fence, language]) {
  let end = at + 1;
  const isClosing = (line) =>
    /^ {0,3}[`~]/.test(line) && line.trim().length >= fence.length && !line.trim().replaceAll(fence[0], "");
  while (end < lines.length && !isClosing(lines[end])) end++;
  const strip = new RegExp(`^ {0,${indent.length}}`);
  const text = lines.slice(at + 1, end).map((line) => line.replace(strip, "")).join("\n");
  return [codeBlock(text, language), end + 1];
}

function listAt(lines, at, first, depth) {
  const isOrdered = /\d/.test(first[2]);
  const list = el(isOrdered ? "ol" : "ul");
  if (isOrdered && Number.parseInt(first[2]) !== 1) list.start = Number.parseInt(first[2]);
  let end = at;
  for (let next = end, item = first; item; item = ITEM.exec(lines[next] ?? "")) {
    if (item[2].at(-1) !== first[2].at(-1) || RULE.test(lines[next])) break;
    const inside = item[1].length + item[2].length + (item[3].length || 1);
    const inner = [lines[next].slice(inside)];
    end = next + 1;
    while (isInItem(lines, end, item[1].length + 2)) inner.push(outdented(lines[end++], inside));
    list.append(itemOf(inner, depth));
    next = lines[end]?.trim() === "" ? end + 1 : end;
  }
  return [list, end];
}

/** Whether a line belongs to the item before it: it is indented, or empty before one that is. */
function isInItem(lines, at, indent) {
  const line = lines[at]?.trim() === "" ? lines[at + 1] : lines[at];
  return line !== undefined && line.search(/\S/) >= indent;
}

function outdented(line, most) {
  return line.slice(Math.min(most, Math.max(0, line.search(/\S|$/))));
}

function itemOf(inner, depth) {
  const task = /^\[([ xX])\] /.exec(inner[0]);
  if (task) inner[0] = `${task[1] === " " ? "☐" : "☑"} ${inner[0].slice(4)}`;
  const parts = markdown(inner.join("\n"), depth + 1);
  const isTight = parts[0]?.localName === "p" && !parts[0].className && !inner.includes("");
  return el("li", "", ...(isTight ? [...parts[0].childNodes, ...parts.slice(1)] : parts));
}

function tableAt(lines, at) {
  const rule = tableCells(lines[at + 1] ?? "");
  if (!lines[at].includes("|") || !rule.every((cell) => /^:?-+:?$/.test(cell))) return null;
  const heads = tableCells(lines[at]);
  if (heads.length !== rule.length) return null;
  const aligned = rule.map((cell) => (cell.endsWith(":") ? (cell[0] === ":" ? "middle" : "num") : ""));
  const row = (name, cells) =>
    el("tr", "", ...heads.map((_, place) => el(name, aligned[place], inline(cells[place] ?? ""))));
  const body = [];
  let end = at + 2;
  for (; end < lines.length && lines[end].trim() && lines[end].includes("|"); end++)
    body.push(row("td", tableCells(lines[end])));
  const table = el("table", "", el("thead", "", row("th", heads)), el("tbody", "", ...body));
  const scroll = el("div", "wide", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Table");
  return [scroll, end];
}

function tableCells(line) {
  const cells = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (cells.length > 1 && !cells.at(-1).trim()) cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** Words of one paragraph: code, links and emphasis in them. */
function inline(text) {
  const found = document.createDocumentFragment();
  if (text.length > MOST_TEXT) {
    found.append(visible(text));
    return found;
  }
  const marks = [];
  const unclosed = new Set();
  let plain = "";
  const put = (node) => {
    if (plain) found.append(visible(plain));
    plain = "";
    if (node) found.append(node);
  };
  for (let at = 0; at < text.length; ) {
    const char = text[at];
    if (char === "\\" && PUNCTUATION.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    const taken =
      char === "`" ? spanAt(text, at, unclosed) : "[!<hH".includes(char) ? linkAt(text, at) : null;
    if (taken) {
      put(taken[0]);
      at = taken[1];
    } else if (char === "`" || "*_~".includes(char)) {
      let end = at;
      while (text[end] === char) end++;
      const mark = char === "`" ? null : markAt(text, at, end);
      if (mark) {
        put(mark.node);
        marks.push(mark);
      } else plain += text.slice(at, end);
      at = end;
    } else {
      plain += char;
      at++;
    }
  }
  put(null);
  emphasize(marks);
  return found;
}

function spanAt(text, at, unclosed) {
  const ticks = /^`+/.exec(text.slice(at, at + 100))[0];
  if (unclosed.has(ticks)) return null;
  let end = at + ticks.length;
  for (;;) {
    end = text.indexOf(ticks, end);
    if (end < 0) {
      unclosed.add(ticks);
      return null;
    }
    let after = end;
    while (text[after] === "`") after++;
    if (after - end === ticks.length && text[at + ticks.length] !== "`") {
      const inner = text.slice(at + ticks.length, end).replace(/\n/g, " ");
      return [el("code", "", inner.replace(/^ (.*\S.*) $/, "$1")), after];
    }
    end = after;
  }
}

const LINK = /!?\[([^\][\n]{0,500})\]\(\s{0,9}<?([^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500})?)>?(?:\s{1,9}"[^"\n]{0,300}")?\s{0,9}\)/y;

/** A link to a page of the web; an address that names another thing stays text. */
function linkAt(text, at) {
  if (text[at] === "[" || text[at] === "!") {
    LINK.lastIndex = at;
    const match = LINK.exec(text);
    const link = match && linkTo(match[2], match[1] || match[2]);
    return link ? [link, at + match[0].length] : null;
  }
  const start = text[at] === "<" ? at + 1 : at;
  if (start === at && /[\p{L}\p{N}_]/u.test(text[at - 1] ?? " ")) return null;
  ADDRESS.lastIndex = start;
  const url = ADDRESS.exec(text)?.[0];
  if (!url) return null;
  const isBracketed = start > at && text[start + url.length] === ">";
  if (start > at && !isBracketed) return null;
  const trimmed = isBracketed ? url : withoutEnd(url);
  const link = linkTo(trimmed, trimmed);
  return link ? [link, start + trimmed.length + (isBracketed ? 1 : 0)] : null;
}

/** An address without the punctuation of its sentence. */
function withoutEnd(url) {
  let end = url.length;
  while (/[.,:;!?*_~)\]}|]/.test(url[end - 1])) {
    if (url[end - 1] === ")" && url.slice(0, end).includes("(")) break;
    end--;
  }
  return url.slice(0, end);
}

function linkTo(address, title) {
  const url = /^https?:\/\/[^\s\\]+$/i.test(address) ? parsedAddress(address) : null;
  if (!url || !["http:", "https:"].includes(url.protocol) || url.username || url.password) return null;
  const link = el("a", "", title);
  link.href = url.href;
  link.title = visible(url.href);
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
  return link;
}

function parsedAddress(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

/** A run of signs that may begin or end an emphasis, as CommonMark decides it. */
function markAt(text, at, end) {
  const before = text[at - 1] ?? " ";
  const after = text[end] ?? " ";
  const isSpace = (char) => /\s/.test(char);
  const isSign = (char) => /[\p{P}\p{S}]/u.test(char);
  const left = !isSpace(after) && (!isSign(after) || isSpace(before) || isSign(before));
  const right = !isSpace(before) && (!isSign(before) || isSpace(after) || isSign(after));
  const sign = text[at];
  const isProduct = sign === "*" && /\d/.test(before) && /\d/.test(after);
  if ((!left && !right) || isProduct || (sign === "~" && end - at !== 2)) return null;
  const opens = left && (sign !== "_" || !right || isSign(before));
  const closes = right && (sign !== "_" || !left || isSign(after));
  return { sign, opens, closes, node: document.createTextNode(text.slice(at, end)) };
}

function emphasize(marks) {
  const open = [];
  for (const mark of marks) {
    while (mark.closes && mark.node.data) {
      const at = open.findLastIndex((each) => each.sign === mark.sign);
      if (at < 0) break;
      const from = open[at];
      open.length = at + 1;
      const size = Math.min(2, from.node.length, mark.node.length);
      const whole = el(mark.sign === "~" ? "s" : size === 2 ? "strong" : "em");
      while (from.node.nextSibling !== mark.node) whole.append(from.node.nextSibling);
      from.node.after(whole);
      from.node.data = from.node.data.slice(size);
      mark.node.data = mark.node.data.slice(size);
      if (!from.node.data) open.pop();
    }
    if (mark.opens && mark.node.data) open.push(mark);
  }
}

const KEYWORDS = new Set(
  `and as assert async await break case catch class const continue def default del do elif else end
  enum except export extends false finally fn for from func function if impl import in interface is
  lambda let match mut new nil none not null or pass private protected pub public raise return select
  self static struct super switch then this throw true try type undefined use var void when where
  while with yield insert update delete create table join on group by order having limit`.split(/\s+/),
);
const HASHED = new Set("bash dockerfile makefile perl py python r rb ruby sh shell toml yaml yml zsh".split(" "));
const STRINGS = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`/.source;
const REMARKS = { hash: /#.*/.source, dash: /--.*/.source, slash: /\/\/.*|\/\*[^]*?\*\//.source };

/** A block of code; strings, comments, numbers and key words have colours where its language is told. */
export function codeBlock(text, language = "") {
  const code = el("code");
  const name = language.toLowerCase();
  if (!name || ["text", "txt", "plain", "markdown", "md"].includes(name) || text.length > MOST_TEXT)
    code.append(visible(text));
  else code.append(...coloured(text, name));
  return el("pre", "code", name ? el("span", "language", name.slice(0, 24)) : null, code);
}

function coloured(text, name) {
  const nodes = [];
  let done = 0;
  const kind = HASHED.has(name) ? "hash" : ["sql", "lua", "haskell"].includes(name) ? "dash" : "slash";
  const parts = new RegExp(`(${STRINGS})|(${REMARKS[kind]})|\\b(\\d[\\w.]*)|([A-Za-z_]\\w*)`, "g");
  for (const match of text.matchAll(parts)) {
    const [whole, string, remark, digits, word] = match;
    const isWord = word && KEYWORDS.has(word.toLowerCase());
    const colour = string ? "string" : remark ? "comment" : digits ? "digits" : isWord ? "word" : "";
    if (!colour) continue;
    nodes.push(visible(text.slice(done, match.index)), el("span", colour, whole));
    done = match.index + whole.length;
  }
  return [...nodes, visible(text.slice(done))];
}
