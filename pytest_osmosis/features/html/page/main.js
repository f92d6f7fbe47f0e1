// The page: what is wanted, the table of it, the run that is open, and the keyboard.
import { showCells } from "./cells.js";
import { OUTCOMES, linkOf, load, page, placed } from "./data.js";
import { hideRun, showRun } from "./detail.js";
import { JUDGED, readJudgements } from "./judge.js";
import { compared } from "./diff.js";
import { isSearchable, readSaid } from "./said.js";
import { anything, barOf, paramsOf, selected, shownRun, wishOf } from "./filter.js";
import { Table } from "./table.js";
import { startEditor } from "./editor.js";
import { button, copied, el, visible } from "./text.js";
import { startTheme, switchTheme } from "./theme.js";

const VALUES = 500;
const by = (id) => document.getElementById(id);
let wish = anything();
let suite = null;
let items = [];
let opened = null;
let reading = null;
let isRaw = false;
let writing = 0;
let written = "";
let followed = location.hash;
const table = new Table((column) => {
  const isSame = wish.sort === column;
  wish = { ...wish, sort: column, down: isSame && !wish.down };
  refresh();
});

function refresh() {
  items = selected(suite, wish);
  table.show(suite, wish, items);
  const runs = items.reduce((sum, item) => sum + item.runs.length, 0);
  const all = suite.rows.reduce((sum, row) => sum + row.runs.length, 0);
  const rows =
    wish.each || suite.n === 1
      ? ""
      : `, ${new Set(items.map((item) => item.row)).size} of ${suite.rows.length} rows`;
  by("count").textContent =
    `${runs.toLocaleString("en")} of ${all.toLocaleString("en")} runs${rows}`;
  offerBar();
  clearTimeout(writing);
  writing = setTimeout(writeAddress, 200);
}

/** The bar of a chart that is chosen, to be left again. */
function offerBar() {
  const [kind, name, low, high] = barOf(wish.bar);
  by("chips").hidden = !wish.bar;
  const range = low === high ? String(low) : `${low} .. ${high}`;
  const what = kind === "score" ? `score of ${name}: ${range}` : `runs that pass ${name}: ${range}`;
  const leave = button(`${what} ✕`, "All scores again", () => {
    wish = { ...wish, bar: "" };
    refresh();
  });
  by("chips").replaceChildren(leave);
}

// ---- what is wanted

function options(select, pairs, chosen) {
  select.replaceChildren(
    ...pairs.map(([value, text]) => {
      const option = el("option", "", text);
      option.value = value;
      return option;
    }),
  );
  if (chosen !== undefined && pairs.some(([value]) => value === chosen)) select.value = chosen;
}

function offer() {
  const changes = [];
  for (const word of ["regressed", "improved", "changed"]) {
    if (suite[word].size) changes.push([word, `${word} (${suite[word].size} rows)`]);
  }
  options(
    by("outcome"),
    [
      ["", "all"],
      ["not passed", "not passed"],
      ...Object.entries(OUTCOMES)
        .map(([word, [, meaning]]) => [word, meaning])
        .filter(([, meaning]) => meaning),
      ...(suite.n > 1 ? [["mixed", "mixed rows: some runs pass"]] : []),
      ...changes,
      ...(page.labels ? JUDGED : []),
    ],
    wish.outcome,
  );
  options(
    by("function"),
    [["", "all of them"], ...suite.functions.map((name) => [name, name])],
    wish.function,
  );
  options(
    by("column"),
    [["-1", "any"], ...suite.columns.map((name, place) => [String(place), name])],
    String(wish.column),
  );
  options(
    by("suite"),
    page.suites.map((each) => [String(each.number), each.name]),
    String(suite.number),
  );
  by("function-label").hidden = suite.functions.length < 2;
  by("column-label").hidden = !suite.columns.length;
  by("suite-label").hidden = page.suites.length < 2;
  by("each-label").hidden = suite.n === 1;
  by("said-label").hidden = !isSearchable();
  offerValues();
}

function offerValues() {
  by("value-label").hidden = wish.column < 0;
  if (wish.column < 0) return;
  const values = [...new Set(suite.rows.map((row) => row.values?.[wish.column] ?? ""))].sort();
  options(
    by("value"),
    [["all", "all"], ...values.slice(0, VALUES).map((value) => [`=${value}`, value || "(empty)"])],
    wish.value === null ? "all" : `=${wish.value}`,
  );
}

function wanted() {
  const column = Number(by("column").value);
  const value =
    column >= 0 && column === wish.column && by("value").value.startsWith("=")
      ? by("value").value.slice(1)
      : null;
  const sort =
    wish.sort.startsWith("column:") && column !== wish.column ? anything(suite).sort : wish.sort;
  wish = {
    ...wish,
    sort,
    words: by("words").value,
    said: by("said").checked,
    outcome: by("outcome").value,
    function: by("function").value,
    each: by("each").checked,
    column,
    value,
  };
  offerValues();
  by("scroll").scrollTop = 0;
  refresh();
  if (wish.said) reading ??= search();
}

/** Read what was said in all runs, once, and look again. */
async function search() {
  const runs = page.suites.flatMap((each) => each.rows.flatMap((row) => row.runs));
  try {
    await readSaid(runs, (share) => {
      by("reading").textContent = share < 1 ? `reading ${Math.round(100 * share)} %` : "";
    });
  } catch {
    by("reading").textContent = "not all conversations can be read";
  }
  refresh();
}

function choose(number) {
  suite = page.suites[number - 1];
  wish = {
    ...anything(suite),
    words: wish.words,
    said: wish.said,
    outcome: ["regressed", "improved", "changed"].includes(wish.outcome) ? "" : wish.outcome,
  };
  offer();
  refresh();
}

// ---- the run that is open

const go = {
  close() {
    const run = opened?.run;
    shut();
    writeAddress();
    if (run)
      by("body")
        .querySelector(`a[href="${CSS.escape(linkOf(suite, run.row, run))}"]`)
        ?.focus();
  },
  step: (way) => step(way, false),
  changed: () => refresh(),
  isRaw: () => isRaw,
  setRaw(flag) {
    isRaw = flag;
    writeAddress();
  },
  link() {
    writeAddress();
    return location.href;
  },
};

function shut() {
  opened = null;
  hideRun();
  table.mark(null);
}

function follow() {
  followed = location.hash;
  const found = placed(location.hash);
  readAddress(found);
  const isMissing = !found && /\brow-\d/.test(location.hash);
  by("missing").textContent = isMissing
    ? visible(`This page has no run ${location.hash.slice(1).slice(0, 80)}.`)
    : "";
  by("missing").hidden = !isMissing;
  if (!found) {
    if (opened) shut();
    if (location.hash === "#more") by("breakdown").open = true;
    if (location.hash.startsWith("#runs?") && location.hash !== written) by("runs").scrollIntoView();
    return;
  }
  if (found.suite !== suite) choose(found.suite.number);
  opened = found;
  writeAddress();
  showRun(found, go);
  if (by("work").getBoundingClientRect().top > innerHeight / 3) by("work").scrollIntoView();
  table.mark(found.run);
  by("detail").focus({ preventScroll: true });
}

/** Go to the next or previous run of those that are shown, or to that of another row. */
function step(way, byRow) {
  if (!items.length) return;
  const at = opened
    ? items.findIndex(
        (item) => item.row === opened.row && (!wish.each || item.runs.includes(opened.run)),
      )
    : -1;
  if (at < 0) return goTo(items[way > 0 ? 0 : items.length - 1]);
  const runs = items[at].runs;
  const next = runs.indexOf(opened.run) + way;
  if (!byRow && runs.includes(opened.run) && next >= 0 && next < runs.length)
    return goTo(items[at], runs[next]);
  const item = items[at + way];
  if (item) goTo(item, byRow ? shownRun(item) : item.runs.at(way > 0 ? 0 : -1));
}

function goTo(item, run = shownRun(item)) {
  address(linkOf(suite, item.row, run), queryOf());
  follow();
}

/** Change the address without an entry in the history; a page in a sandbox may not. */
function address(hash, query) {
  const whole = query ? `${hash}?${query}` : hash;
  const isElsewhere = !/^(#runs|#(\d+\/)?row-.*)?(\?.*)?$/.test(location.hash);
  if (whole === (location.hash || "#runs") || (isElsewhere && whole === "#runs")) return;
  written = whole;
  try {
    history.replaceState(null, "", whole);
  } catch {
    location.hash = whole;
  }
  followed = location.hash;
}

function queryOf() {
  const params = paramsOf(wish, suite);
  if (!opened && suite.number > 1) params.set("suite", suite.number);
  if (isRaw) params.set("raw", "yes");
  return params.toString();
}

/** Have what is chosen, sorted and open in the address, so that it can be sent. */
function writeAddress() {
  clearTimeout(writing);
  if (location.hash !== followed) return; // a link was pressed, and is to be followed first
  address(opened ? linkOf(suite, opened.row, opened.run) : "#runs", queryOf());
}

/** Choose and sort as the address says; one without a word of it changes nothing. */
function readAddress(found) {
  const [, query] = location.hash.split("?", 2);
  if (query === undefined) return;
  const params = new URLSearchParams(query);
  suite = found?.suite ?? page.suites[Number(params.get("suite")) - 1] ?? suite;
  wish = wishOf(params, suite);
  isRaw = params.get("raw") === "yes";
  by("words").value = wish.words;
  by("said").checked = wish.said;
  by("each").checked = wish.each;
  offer();
  refresh();
  if (wish.said) reading ??= search();
}

// ---- the keyboard

const ACTS = {
  j: () => step(1, false),
  k: () => step(-1, false),
  J: () => step(1, true),
  K: () => step(-1, true),
  "/": () => by("words").focus(),
  "?": () => by("help").showModal(),
  c: () => opened && copied(go.link()),
  r: () => document.querySelector("#detail .judgement")?.mark(true),
  w: () => document.querySelector("#detail .judgement")?.mark(false),
  t: switchTheme,
  Escape: () => opened && go.close(),
};

function pressed(event) {
  // The focus leaves a dialog that was closed only with the next picture of the page.
  const typing = event.target.closest?.("input, select, textarea, dialog[open]");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (typing.id === "words" && ["Escape", "Enter"].includes(event.key)) leaveSearch(event);
    return;
  }
  const act = ACTS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

/** Go on to the rows: with Enter to those that were found, with Escape to all. */
function leaveSearch(event) {
  event.preventDefault();
  by("words").blur();
  if (event.key === "Enter") return by("body").querySelector("a")?.focus();
  by("words").value = "";
  wanted();
}

// ---- live

function listen() {
  const events = new EventSource(page.events);
  let busy = false;
  let again = false;
  by("live").textContent = "live";
  const renew = async () => {
    again = busy;
    if (busy) return;
    busy = true;
    const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
    if (answer.ok) await take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    busy = false;
    if (again) renew();
  };
  events.addEventListener("changed", renew);
  events.addEventListener("ended", () => {
    events.close();
    by("live").textContent = "ended";
    renew();
  });
  events.addEventListener("error", () => (by("live").textContent = "not connected"));
  events.addEventListener("open", () => (by("live").textContent = "live"));
}

async function take(newer) {
  const was = opened?.run;
  await load(newer);
  await readJudgements();
  document.title = newer.title;
  document.querySelector("h1").replaceWith(document.adoptNode(newer.querySelector("h1")));
  const isOpen = by("breakdown").open;
  for (const id of ["summary", "more"])
    by(id).replaceWith(document.adoptNode(newer.getElementById(id)));
  by("breakdown").open = isOpen;
  compareAnswers();
  showCells();
  suite = page.suites[Math.min(suite?.number ?? 1, page.suites.length) - 1];
  if (!suite) return;
  offer();
  refresh();
  if (was) {
    opened = placed(location.hash);
    table.mark(opened?.run ?? null);
  }
}

/** Mark what differs in answers that stand beside each other. */
function compareAnswers() {
  for (const pair of document.querySelectorAll("#more .pair")) {
    const [before, now] = pair.querySelectorAll(".answer");
    const [left, right] = compared(before.textContent, now.textContent);
    before.replaceChildren(...left);
    now.replaceChildren(...right);
  }
}

async function start() {
  startTheme();
  by("buttons").hidden = false;
  by("keys").addEventListener("click", () => by("help").showModal());
  compareAnswers();
  if (typeof DecompressionStream === "undefined") {
    by("older").hidden = false;
    return;
  }
  await load(document);
  await readJudgements();
  by("tools").addEventListener("submit", (event) => event.preventDefault());
  by("tools").addEventListener("input", (event) => {
    if (event.target.id === "suite") choose(Number(event.target.value));
    else wanted();
  });
  addEventListener("hashchange", follow);
  addEventListener("keydown", pressed);
  suite = page.suites[0];
  by("runs").hidden = !suite;
  showCells();
  startEditor();
  if (suite) {
    wish = anything(suite);
    offer();
    refresh();
    follow();
  }
  if (page.events) listen();
  document.documentElement.dataset.ready = "yes";
}

start();
