// An answer against what was expected: what they share, and what only one has.
import { el } from "./text.js";

const WORDS = 1500;

/** What was expected and what came, as nodes: the one is marked in the other, or what differs. */
export function held(expected, answer) {
  return contained(expected, answer) ?? compared(expected, answer);
}

/** Two texts as nodes, with what only one of them has marked. */
export function compared(before, after) {
  if (before === after) return [[before], [after]];
  const [left, right] = [before, after].map(
    (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [],
  );
  const unlike = Math.max(left.length, right.length) > 8 * Math.min(left.length, right.length) + 8;
  if (unlike || left.length > WORDS || right.length > WORDS) return [[before], [after]];
  const [leftOnly, rightOnly] = unshared(left, right);
  const shared = left.filter((word, at) => /[\p{L}\p{N}]/u.test(word) && !leftOnly.has(at)).length;
  if (4 * shared < Math.min(left.length, right.length) / 2) return [[before], [after]];
  return [painted(left, leftOnly, "del"), painted(right, rightOnly, "ins")];
}

/** Mark in two elements what only one of their texts has, where that is not marked already. */
export function markDifferences(pair) {
  if (typeof Highlight === "undefined") return; // an older browser: both are read as they are
  const sides = [...pair];
  if (sides.some((side) => side.querySelector("del, ins"))) return;
  const nodes = sides.map(textsOf);
  const texts = compared(...nodes.map((each) => each.map((node) => node.data).join(" ")));
  CSS.highlights.set("differs", new Highlight(...nodes.flatMap((each, at) => rangesOf(each, texts[at]))));
}

function textsOf(side) {
  const walker = document.createTreeWalker(side, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

/** Mark the ground truth where it stands in an answer that is rendered. */
export function markHeld(expected, side) {
  if (typeof Highlight === "undefined" || side.querySelector("mark, ins")) return;
  const nodes = textsOf(side);
  const found = contained(expected, nodes.map((node) => node.data).join(" "));
  CSS.highlights.set("held", new Highlight(...rangesOf(nodes, found?.[1] ?? [])));
}

/** The places of what is marked in `parts`, a text that these nodes have, with a space between. */
function rangesOf(nodes, parts) {
  const wanted = [];
  let end = 0;
  for (const part of parts) {
    const start = end;
    end += (part.textContent ?? part).length;
    if (part instanceof Node) wanted.push([start, end]);
  }
  const found = [];
  let from = 0;
  for (const node of nodes) {
    for (const [start, stop] of wanted) {
      if (start >= from + node.length || stop <= from) continue;
      const range = new Range();
      range.setStart(node, Math.max(0, start - from));
      range.setEnd(node, Math.min(node.length, stop - from));
      found.push(range);
    }
    from += node.length + 1;
  }
  return found;
}

/** Where the one text stands whole in the other, that place is marked. */
function contained(before, after) {
  const wanted = before.trim();
  if (!wanted || wanted === after.trim())
    return wanted ? [[before], [el("mark", "", after)]] : null;
  const at = place(wanted, after);
  if (at < 0) return null;
  const end = at + wanted.length;
  return [[before], [after.slice(0, at), el("mark", "", after.slice(at, end)), after.slice(end)]];
}

/** The last place of a text where it is no part of a longer word or number. */
function place(wanted, text) {
  const word = /[\p{L}\p{N}_]/u;
  for (
    let at = text.lastIndexOf(wanted);
    at >= 0;
    at = at ? text.lastIndexOf(wanted, at - 1) : -1
  ) {
    const before = text[at - 1] ?? " ";
    const after = text[at + wanted.length] ?? " ";
    if (
      !(word.test(before) && word.test(wanted[0])) &&
      !(word.test(after) && word.test(wanted.at(-1)))
    )
      return at;
  }
  return -1;
}

/** Which words of each list are not in their longest common subsequence. */
function unshared(left, right) {
  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        left[i] === right[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const found = [new Set(left.keys()), new Set(right.keys())];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    if (left[i] === right[j]) {
      found[0].delete(i++);
      found[1].delete(j++);
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return found;
}

function painted(words, only, name) {
  const nodes = [];
  for (let at = 0; at < words.length; ) {
    const differs = only.has(at);
    let text = "";
    while (at < words.length && only.has(at) === differs) text += words[at++];
    nodes.push(differs && text.trim() ? el(name, "", text) : text);
  }
  return nodes;
}
