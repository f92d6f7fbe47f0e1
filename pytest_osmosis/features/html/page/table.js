// The table of rows: only the lines in sight are there, so that ten thousand are as quick as ten.
import { OUTCOMES, linkOf } from "./data.js";
import {
  average,
  changeOf,
  comparedBy,
  differenceOf,
  meanBefore,
  meanScore,
  shownRun,
  spent,
} from "./filter.js";
import { el, line, number, seconds, visible } from "./text.js";

const BEYOND = 12;
const PRINTED = 2000;

export class Table {
  /** `order` is called with the name of a column when its head is pressed. */
  constructor(order) {
    this.order = order;
    this.scroll = document.getElementById("scroll");
    this.table = document.getElementById("table");
    this.head = document.getElementById("head");
    this.body = document.getElementById("body");
    this.items = [];
    this.columns = [];
    this.lines = new Map();
    this.above = this.below = null;
    this.open = null;
    this.frame = 0;
    this.isPrinting = false;
    this.scroll.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.scroll);
    this.body.addEventListener("click", (event) => this.clicked(event));
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => {
      this.isPrinting = false;
      this.redraw();
    });
  }

  show(suite, wish, items) {
    this.suite = suite;
    this.items = items;
    this.columns = columnsOf(suite, wish);
    this.table.classList.toggle("many", suite.functions.length > 2);
    this.table.classList.toggle("named", suite.rows.some((row) => row.name.length > 10));
    this.table.classList.toggle("against", Boolean(suite.against));
    this.heads(wish);
    this.table.setAttribute("aria-rowcount", items.length + 1);
    document.getElementById("none").hidden = items.length > 0;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.hash : null;
    this.lines.clear();
    this.above = gap();
    this.below = gap();
    this.body.replaceChildren(this.above, this.below);
    this.redraw();
    if (focused)
      this.body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  heads(wish) {
    const cells = this.columns.map((column) => {
      const cell = el("th", column.classes);
      const press = el("button", "", column.title);
      press.type = "button";
      press.title = visible(`Sort by ${column.hint ?? column.title}`);
      press.dataset.sort = column.name;
      press.addEventListener("click", () => this.order(column.name));
      cell.append(press);
      cell.scope = "col";
      const direction = wish.down ? "descending" : "ascending";
      cell.setAttribute("aria-sort", wish.sort === column.name ? direction : "none");
      return cell;
    });
    const focused = this.head.contains(document.activeElement)
      ? document.activeElement.dataset.sort
      : null;
    this.head.replaceChildren(el("tr", "", ...cells));
    if (focused) this.head.querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
  }

  later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.redraw());
  }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.below || this.isPrinting) return; // nothing was shown yet, or all of it is
    this.height = parseFloat(getComputedStyle(this.table).getPropertyValue("--row")) || 40;
    const first = Math.floor(this.scroll.scrollTop / this.height) - BEYOND;
    const seen = Math.ceil(innerHeight / this.height); // it is never higher
    this.draw(Math.max(0, first), Math.min(this.items.length, first + seen + 2 * BEYOND));
  }

  /** Have all lines there, up to a limit, which is said; paper has another size than the window. */
  print() {
    if (!this.below) return;
    const there = Math.min(this.items.length, PRINTED);
    this.isPrinting = true;
    this.draw(0, there);
    document.getElementById("printed").textContent =
      there < this.items.length
        ? `Printed are the first ${number(there)} of ${number(this.items.length)} lines.`
        : "";
  }

  /** Have these lines there. Those that stay are not touched: one may be pressed just now. */
  draw(first, last) {
    for (const [at, line] of this.lines) {
      if (at >= first && at < last) continue;
      line.remove();
      this.lines.delete(at);
    }
    let below = this.below;
    for (let at = last - 1; at >= first; at--) {
      let line = this.lines.get(at);
      if (!line) {
        line = this.line(this.items[at], at);
        this.lines.set(at, line);
        below.before(line);
      }
      line.classList.toggle("open", this.open !== null && this.items[at].runs.includes(this.open));
      below = line;
    }
    widen(this.above, first * this.height);
    widen(this.below, (this.items.length - last) * this.height);
  }

  line(item, at) {
    const cells = this.columns.map((column) => {
      const name = column.name === "row" ? "th" : "td";
      const cell = el(name, column.classes, ...column.show(item, this.suite));
      if (/\blong\b/.test(column.classes)) cell.dir = "auto"; // from its beginning
      if (column.name === "row") cell.scope = "row";
      return cell;
    });
    const found = el("tr", "", ...cells);
    found.setAttribute("aria-rowindex", at + 2);
    return found;
  }

  clicked(event) {
    if (event.target.closest("a") || String(getSelection())) return;
    event.target.closest("tr")?.querySelector("a")?.click();
  }

  /** Scroll to the line of a run, and mark it; null marks none. */
  mark(run) {
    this.open = run;
    const at = run ? this.items.findIndex((item) => item.runs.includes(run)) : -1;
    if (at >= 0) {
      const room = this.scroll.clientHeight - this.head.offsetHeight - this.height;
      const top = at * this.height;
      if (top < this.scroll.scrollTop || top > this.scroll.scrollTop + room)
        this.scroll.scrollTop = Math.max(0, top - room / 3);
    }
    this.redraw();
  }
}

/** A line that takes the room of those that are not there: of one column, as others may be hidden. */
function gap() {
  const found = el("tr", "gap", el("td", "gap"));
  found.setAttribute("aria-hidden", "true");
  return found;
}

function widen(line, height) {
  line.hidden = height <= 0;
  line.firstChild.style.height = `${height}px`;
}

function columnsOf(suite, wish) {
  const every = [
    { name: "row", title: "Row", classes: "name", show: nameOf },
    { name: "passed", title: "Passed", classes: "passes", show: passesOf },
    ...(suite.against ? against(suite, comparedBy(suite, wish)) : suite.functions.map((name) => ({
      name: `score:${name}`,
      title: shortName(suite, name),
      hint: name,
      classes: "num score",
      show: (item) => [digits3(meanScore(suite, item, name))],
    }))),
    {
      name: "question",
      title: "Question",
      classes: "long",
      show: (item) => [line(item.row.question)],
    },
    {
      name: "truth",
      title: "Ground truth",
      classes: "long truth",
      show: (item) => [line(item.row.truth ?? "")],
    },
    { name: "answer", title: "Answer", classes: "long reply", show: answerOf },
  ];
  if (suite.against) every.splice(1, 0, { name: "change", title: "Change", classes: "verdict", show: verdictOf });
  if (wish.column >= 0) {
    const title = suite.columns[wish.column];
    every.push({
      name: `column:${wish.column}`,
      title,
      classes: "value",
      show: (item) => [item.row.values?.[wish.column] ?? ""],
    });
  }
  every.push({
    name: "tokens",
    title: "Tokens",
    classes: "num spent",
    show: (item) => [rounded(average(item.counted, (run) => run.tokens))],
  });
  every.push({
    name: "time",
    title: "Time",
    classes: "num spent",
    show: (item) => [taken(average(item.counted, (run) => run.duration_ms))],
  });
  if (suite.rows.some((row) => row.runs.some((run) => run.cost_usd != null)))
    every.push({
      name: "cost",
      title: "Cost",
      classes: "num spent",
      show: (item) => [money(average(item.counted, spent))],
    });
  return every.filter((column) => column.name !== "truth" || suite.rows.some((row) => row.truth));
}

/** An eval function's name without its module; with it where another one ends alike. */
function shortName(suite, name) {
  const last = (each) => (/^\w+\(/.test(each) ? each : each.split(":").pop());
  return suite.functions.filter((each) => last(each) === last(name)).length > 1 ? name : last(name);
}

/** A score with the digits that a narrow column has room for; the run itself shows all. */
function digits3(value) {
  return number(value === null || Math.abs(value) >= 1000 ? value : Number(value.toPrecision(3)));
}

/** Both results of an eval function, and their difference. */
function against(suite, name) {
  const title = shortName(suite, name);
  const column = (kind, text, show) => ({
    name: `${kind}:${name}`,
    title: text,
    hint: `${title}: ${text}`,
    classes: `num score ${kind === "change" ? "" : "side"}`,
    show,
  });
  return [
    column("before", suite.against.title, ({ row }) => [digits3(meanBefore(suite, row, name))]),
    column("score", "Current", (item) => [digits3(meanScore(suite, item, name))]),
    column("change", "Difference", ({ row }) => [signed(differenceOf(suite, row, name))]),
  ];
}

function signed(value) {
  const near = value === null ? null : Number(value.toPrecision(12));
  return near > 0 ? `+${digits3(near)}` : digits3(near);
}

const VERDICTS = { regressed: "state failed", improved: "state passed", changed: "soft" };

function verdictOf(item, suite) {
  const word = changeOf(suite, item.row);
  return [el("span", VERDICTS[word] ?? "", word)];
}

function rounded(value) {
  return value === null ? "–" : Math.round(value).toLocaleString("en");
}

function taken(ms) {
  return ms === null ? "–" : seconds(ms);
}

function money(value) {
  if (value > 0 && value < 0.00005) return "<$0.0001";
  return value === null ? "–" : `$${value.toFixed(4)}`;
}

function nameOf(item, suite) {
  const run = shownRun(item);
  const link = el("a", "", item.counted.length === 1 ? run.name : item.row.name);
  link.href = linkOf(suite, item.row, run);
  link.title = visible(link.textContent);
  return [link, judgedOf(item.runs)];
}

/** How many runs of a line people call right or wrong. */
function judgedOf(runs) {
  const marked = runs.filter((run) => typeof run.judged?.is_right === "boolean");
  if (!marked.length) return null;
  const right = marked.filter((run) => run.judged.is_right).length;
  const found = el("span", "judged", right === marked.length ? " ◉" : right ? " ◐" : " ◎");
  found.title = `people call ${right} of ${marked.length} marked runs right`;
  return found;
}

function passesOf(item) {
  if (item.counted.length === 1) {
    const { outcome } = item.counted[0];
    return [el("span", `state ${outcome}`, `${OUTCOMES[outcome][0]} ${outcome}`)];
  }
  const passed = item.row.runs.filter((run) => run.passed).length;
  const all = item.row.runs.length;
  const state = passed === all ? "passed" : passed ? "partly" : "failed";
  const share = el("span", `share ${state}`, `${passed}/${all}`);
  share.title = `${passed} of ${all} runs passed`;
  return [share, dotsOf(item.row.runs)];
}

const DOTS = 6;

/** A dot for each run; of many, a bar with the share of each outcome. */
function dotsOf(runs) {
  const many = runs.length > DOTS;
  const found = el("span", many ? "dots shares" : "dots");
  found.setAttribute("aria-hidden", "true");
  for (const outcome of many ? Object.keys(OUTCOMES) : runs.map((run) => run.outcome)) {
    const part = el("i", outcome);
    if (many) part.style.flexGrow = runs.filter((run) => run.outcome === outcome).length;
    found.append(part);
  }
  return found;
}

function answerOf(item) {
  const run = shownRun(item);
  if (run.error) return [el("span", run.outcome, line(run.error))];
  return [line(run.answer ?? "")];
}
