// Frames of a traceback as links that open the file in an editor of this machine.
import { el } from "./text.js";

const CHOICE = "osmosis-editor";
const FRAME = /^( *File "([^"\n]+)", line (\d+).*)$/gm;
const EDITORS = {
  vscode: (path, line) => `vscode://file${path}:${line}`,
  cursor: (path, line) => `cursor://file${path}:${line}`,
  pycharm: (path, line) => `pycharm://open?file=${path}&line=${line}`,
};
let editor = "vscode";

/** Offer the choice of the editor, which the browser remembers. */
export function startEditor() {
  const select = document.getElementById("editor");
  try {
    editor = localStorage.getItem(CHOICE) ?? editor;
  } catch {
    // a page from a file may have no storage: the choice lasts as long as the page
  }
  select.value = editor;
  select.addEventListener("change", () => {
    editor = select.value;
    try {
      localStorage.setItem(CHOICE, editor);
    } catch {
      // as above
    }
  });
}

/** A traceback, in which each frame of a file leads to its line. */
export function traceback(text) {
  const found = el("pre", "traceback");
  found.tabIndex = 0;
  let done = 0;
  for (const match of text.matchAll(FRAME)) {
    const [whole, , path, line] = match;
    const link = frameLink(path, line, whole.trim());
    if (!link) continue;
    const start = match.index + whole.length - whole.trimStart().length;
    found.append(...el("span", "", text.slice(done, start)).childNodes, link);
    done = match.index + whole.length;
  }
  found.append(...el("span", "", text.slice(done)).childNodes);
  return found;
}

function frameLink(path, line, title) {
  const address = EDITORS[editor]?.(encodeURI(path).replace(/[?#&]/g, encodeURIComponent), line);
  if (!address || !path.startsWith("/")) return null;
  const link = el("a", "", title);
  link.href = address;
  link.title = "Open in the editor";
  return link;
}
