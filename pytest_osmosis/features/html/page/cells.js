// The cells of suites that run the same rows: a line a row with its question, a column a suite;
// the rows that they disagree on most are on top, and the others folded.
import { linkOf, page } from "./data.js";
import { button, el, line, visible } from "./text.js";

const CELLS_AT_FIRST = 10;
const CELLS_SHOWN = 200;

/** Fill the place for cells, where several suites have run the same rows. */
export function showCells() {
  const place = document.getElementById("cells");
  if (!place) return;
  const groups = new Map();
  for (const suite of page.suites) {
    if (!groups.has(suite.group)) groups.set(suite.group, []);
    groups.get(suite.group).push(suite);
  }
  place.replaceChildren(
    ...[...groups].filter(([, suites]) => suites.length > 1).map(([name, suites]) => groupTable(name, suites)),
  );
}

function groupTable(name, suites) {
  const names = suites.map((suite) => suite.label || suite.model);
  const lines = new Map();
  suites.forEach((suite, at) => {
    for (const row of suite.rows) {
      if (!lines.has(row.index)) lines.set(row.index, { row, cells: [] });
      if (row.runs.length) lines.get(row.index).cells[at] = passedOf(row.runs, linkOf(suite, row));
    }
  });
  const items = [...lines.values()];
  for (const item of items) {
    const shares = item.cells.filter(Boolean).map(cellShare);
    item.apart = shares.length ? Math.max(...shares) - Math.min(...shares) : 0;
  }
  return cellTable(`Rows of ${name}, runs that passed`, names, items);
}

function passedOf(runs, link) {
  return { passed: runs.filter((run) => run.outcome === "passed").length, of: runs.length, link };
}

function cellTable(title, names, items) {
  const body = el("tbody", "");
  const heads = [];
  const columns = [
    ["row", (item) => item.row.index],
    ["question", (item) => item.row.question.toLowerCase()],
    ...names.map((name, at) => [name, (item) => cellShare(item.cells[at])]),
    ["disagreement", (item) => -item.apart],
  ];
  let order = [];
  let shown = CELLS_AT_FIRST;
  const more = button("", "Show more rows", () => {
    shown = CELLS_SHOWN;
    draw();
  });
  more.removeAttribute("aria-label"); // its text says how many
  const draw = () => {
    body.replaceChildren(...order.slice(0, shown).map((item) => cellLine(item, names)));
    const left = order.length - shown;
    more.hidden = left <= 0 || shown === CELLS_SHOWN;
    more.textContent = `${left.toLocaleString("en")} more rows`;
    note.textContent = more.hidden && left > 0 ? `and ${left.toLocaleString("en")} more rows: sort by another column` : "";
  };
  const note = el("p", "soft");
  const sort = (at, down) => {
    const key = columns[at][1];
    const sign = down ? -1 : 1;
    order = [...items].sort((one, two) => {
      const [left, right] = [key(one), key(two)];
      return left === right ? one.row.index - two.row.index : left < right ? -sign : sign;
    });
    draw();
    heads.forEach((head, place) => {
      head.setAttribute("aria-sort", place === at ? (down ? "descending" : "ascending") : "none");
    });
  };
  columns.forEach(([name], at) => {
    const head = el("th", at > 1 ? "num" : "");
    head.scope = "col";
    head.append(
      button(name, `Sort by ${name}`, () => sort(at, head.getAttribute("aria-sort") === "ascending")),
    );
    heads.push(head);
  });
  sort(columns.length - 1, false);
  const table = el("table", "figures cells", el("thead", "", el("tr", "", ...heads)), body);
  const wide = el("div", "wide", table);
  wide.tabIndex = 0;
  wide.setAttribute("role", "region");
  wide.setAttribute("aria-label", visible(title));
  return el("div", "", el("h3", "", title), wide, more, note);
}

function cellShare(found) {
  return found ? found.passed / found.of : -1;
}

function cellLine(item, names) {
  const cells = names.map((name, at) => {
    const found = item.cells[at];
    if (!found) return el("td", "num", "-");
    const share = cellShare(found);
    const link = el("a", share === 1 ? "passed" : share ? "partly" : "failed", `${found.passed}/${found.of}`);
    link.href = found.link;
    return el("td", "num", link);
  });
  const head = el("th", "", el("code", "", item.row.name));
  head.scope = "row";
  const question = el("td", "question", line(item.row.question));
  question.dir = "auto";
  return el("tr", "", head, question, ...cells, el("td", "num", item.apart.toFixed(2)));
}
