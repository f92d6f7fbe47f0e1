// The cells of suites that run the same rows: a line a row, a column a suite, those that disagree
// most on top.
import { linkOf, page } from "./data.js";
import { button, el, visible } from "./text.js";

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
    ...[...groups].filter(([, suites]) => suites.length > 1 || suites[0].rows.some((row) => row.other))
      .map(([name, suites]) => groupTable(name, suites)),
  );
}

function groupTable(name, suites) {
  const names = suites.map((suite) => suite.label || suite.model);
  const lines = new Map();
  const put = (row, at, cell) => {
    if (!lines.has(row.index)) lines.set(row.index, { row, cells: [] });
    if (cell.of) lines.get(row.index).cells[at] = cell;
  };
  const other = suites.length === 1 ? 1 : 0;
  if (other) names.unshift(suites[0].against?.source ?? "other");
  suites.forEach((suite, at) => {
    for (const row of suite.rows) {
      put(row, at + other, passedOf(row.runs, linkOf(suite, row)));
      if (other) put(row, 0, passedOf(row.other ?? [], linkOf(suite, row)));
    }
  });
  const items = [...lines.values()];
  for (const item of items) {
    const shares = item.cells.filter(Boolean).map((each) => each.passed / each.of);
    item.apart = Math.max(...shares) - Math.min(...shares);
  }
  return cellTable(`Rows of ${name}, runs that passed`, names, items);
}

function passedOf(runs, link) {
  return { passed: runs.filter((run) => run.outcome === "passed").length, of: runs.length, link };
}

function cellTable(title, names, items) {
  const body = el("tbody", "");
  const note = el("p", "soft");
  const heads = [];
  const columns = [
    ["row", (item) => item.row.index],
    ...names.map((name, at) => [name, (item) => cellShare(item.cells[at])]),
    ["disagreement", (item) => -item.apart],
  ];
  const sort = (at, down) => {
    const key = columns[at][1];
    const order = [...items].sort(
      (one, two) => (down ? -1 : 1) * (key(one) - key(two)) || one.row.index - two.row.index,
    );
    body.replaceChildren(...order.slice(0, CELLS_SHOWN).map((item) => cellLine(item, names)));
    const left = items.length - CELLS_SHOWN;
    note.textContent = left > 0 ? `and ${left.toLocaleString("en")} more rows: sort by another column` : "";
    heads.forEach((head, place) => {
      head.setAttribute("aria-sort", place === at ? (down ? "descending" : "ascending") : "none");
    });
  };
  columns.forEach(([name], at) => {
    const head = el("th", at ? "num" : "");
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
  return el("div", "", el("h3", "", title), wide, note);
}

function cellShare(found) {
  return found ? found.passed / found.of : -1;
}

function cellLine(item, names) {
  const cells = names.map((name, at) => {
    const found = item.cells[at];
    if (!found) return el("td", "num", "-");
    const share = cellShare(found);
    const link = el("a", share === 1 ? "passed" : share ? "" : "failed", `${found.passed}/${found.of}`);
    link.href = found.link;
    return el("td", "num", link);
  });
  const head = el("th", "", el("code", "", item.row.name));
  head.scope = "row";
  return el("tr", "", head, ...cells, el("td", "num", Number.isFinite(item.apart) ? item.apart.toFixed(2) : "-"));
}
