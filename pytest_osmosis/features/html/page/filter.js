// Which runs are shown, and in which order. Knows no elements.
import { OUTCOMES, outcomeOf } from "./data.js";
import { JUDGED, isJudged } from "./judge.js";

/** What is wanted of runs, at first: all of them, the worst first; of a comparison, what regressed. */
export function anything(suite) {
  return {
    words: "",
    said: false,
    outcome: "",
    function: "",
    column: -1,
    value: null,
    each: false,
    bar: "",
    sort: suite?.against ? "change" : "passed",
    down: false,
  };
}

/** What of it differs from that at first, as an address has it. */
export function paramsOf(wish, suite) {
  const found = new URLSearchParams();
  for (const [name, first] of Object.entries(anything(suite)))
    if (wish[name] !== first) found.set(name, wish[name] === true ? "yes" : wish[name]);
  return found;
}

/** What an address asks for. */
export function wishOf(params, suite) {
  const wish = anything(suite);
  for (const [name, first] of Object.entries(wish)) {
    const text = params.get(name);
    if (text === null) continue;
    wish[name] = typeof first === "boolean" ? text === "yes" : typeof first === "number" ? Number(text) : text;
  }
  if (params.has("by")) wish.column = suite.columns.indexOf(params.get("by"));
  if (!(wish.column in suite.columns)) [wish.column, wish.value] = [-1, null];
  if (!suite.functions.includes(wish.function)) wish.function = "";
  if (!keyOf(wish.sort, suite)) wish.sort = anything(suite).sort;
  return wish;
}

/** The lines of the table: a row, its runs that are wanted, and those that its figures are of. */
export function selected(suite, wish) {
  const words = wish.words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const row of suite.rows) {
    if (!rowFits(suite, row, wish)) continue;
    const left = words.filter((word) => !row.low.includes(word));
    const runs = row.runs.filter((run) => runFits(suite, run, left, wish));
    if (wish.each) for (const run of runs) found.push({ row, runs: [run], counted: [run] });
    else if (runs.length) found.push({ row, runs, counted: runs.length > 1 ? row.runs : runs });
  }
  return ordered(found, suite, wish);
}

function rowFits(suite, row, wish) {
  if (["regressed", "improved", "changed"].includes(wish.outcome) && !suite[wish.outcome].has(row.index)) return false;
  if (wish.outcome === "mixed" && !isMixed(suite, row, wish.function)) return false;
  const [kind, name, low, high] = barOf(wish.bar);
  if (kind === "passes") {
    const passes = row.runs.filter((run) => outcomeOf(run, suite, name) === "passed").length;
    if (passes < low || passes > high) return false;
  }
  return wish.column < 0 || wish.value === null || (row.values?.[wish.column] ?? "") === wish.value;
}

/** Whether some runs of a row pass and others fail; those that do not count do neither. */
function isMixed(suite, row, name) {
  const outcomes = row.runs.map((run) => {
    const outcome = outcomeOf(run, suite, name);
    const counts = name ? run.zero?.includes(name) : run.zero;
    return outcome === "error" && counts ? "below" : outcome;
  });
  const fails = (outcome) => ["below", "raised", "timeout"].includes(outcome);
  return outcomes.includes("passed") && outcomes.some(fails);
}

function runFits(suite, run, words, wish) {
  const outcome = outcomeOf(run, suite, wish.function);
  if (wish.outcome in OUTCOMES && outcome !== wish.outcome) return false;
  if (wish.outcome === "not passed" && ["passed", ""].includes(outcome)) return false;
  if (JUDGED.some(([word]) => word === wish.outcome) && !isJudged(run, wish.outcome)) return false;
  const [kind, name, low, high] = barOf(wish.bar);
  if (kind === "score" && !(run.scores[name] >= low && run.scores[name] <= high)) return false;
  return words.every(
    (word) => run.low.includes(word) || (wish.said && run.said?.includes(word)),
  );
}

/** The parts of the bar of a chart that is chosen: what it counts, of which function, from, to. */
export function barOf(text) {
  const [kind, ...rest] = text.split(":");
  const [low, high] = rest.splice(-2).map(Number);
  return [kind, rest.join(":"), low, high];
}

/** The run that stands for a line: the first that did not pass. */
export function shownRun(item) {
  return item.runs.find((run) => !run.passed) ?? item.runs[0];
}

export function average(runs, give) {
  let sum = 0;
  let count = 0;
  for (const run of runs) {
    const value = give(run);
    if (value === null || value === undefined) continue;
    sum += value;
    count++;
  }
  return count ? sum / count : null;
}

const KEYS = {
  row: (item) => item.row.index,
  passed: (item, suite) => passedShare(item) + meanOfAll(suite, item) / 1e6,
  change: (item, suite) => rankOf(item, suite),
  question: (item) => natural(item.row.question),
  truth: (item) => natural(item.row.truth ?? ""),
  answer: (item) => natural(shownRun(item).error ?? shownRun(item).answer ?? ""),
  tokens: (item) => average(item.counted, (run) => run.tokens),
  time: (item) => average(item.counted, (run) => run.duration_ms),
  cost: (item) => average(item.counted, spent),
};

/** What a run cost: nothing where no call was answered, null where the price is not known. */
export function spent(run) {
  return run.cost_usd ?? (run.tokens === 0 && !run.llm_calls ? 0 : null);
}

/** The mean score of a line, over its runs that count. */
export function meanScore(suite, item, name) {
  return average(item.counted, (run) => countedScore(run, name));
}

/** What a run counts for in an eval function's figures; null where it is left out. */
function countedScore(run, name) {
  return run.scores[name] ?? (run.zero?.includes(name) ? 0 : null);
}

export function keyOf(sort, suite) {
  if (sort.startsWith("score:")) return (item) => meanScore(suite, item, sort.slice(6));
  if (sort.startsWith("before:")) return (item) => meanBefore(suite, item.row, sort.slice(7));
  if (sort.startsWith("change:")) return (item) => differenceOf(suite, item.row, sort.slice(7));
  if (sort.startsWith("column:"))
    return (item) => natural(item.row.values?.[Number(sort.slice(7))] ?? "");
  const key = KEYS[sort];
  return key && ((item) => key(item, suite));
}

function passedShare(item) {
  const isLeftOut = (run) => ["error", "not run"].includes(run.outcome) && !run.zero;
  return average(item.counted, (run) => (run.passed ? 1 : isLeftOut(run) ? null : 0));
}

/** The mean of all scores of a line, from 0 to 1: rows that pass alike are ordered by it. */
function meanOfAll(suite, item) {
  const means = suite.functions.map((name) => meanScore(suite, item, name) ?? 0);
  return 0.5 + Math.atan(means.reduce((sum, each) => sum + each, 0)) / Math.PI;
}

/** The eval function whose figures a comparison shows. */
export function comparedBy(suite, wish) {
  return wish.function || suite.functions[0];
}

/** The mean score of a row on the other side; null where it is not known. */
export function meanBefore(suite, row, name) {
  if (row.before && name in row.before) return row.before[name];
  const runs = (row.other ?? []).filter((run) => Object.keys(run.scores).length || run.error_type);
  if (runs.length) return average(runs, (run) => countedScore(run, name));
  return suite.paired ? meanScore(suite, { counted: row.runs }, name) : null;
}

/** What became of a row against the other side: a word, or "" where its figure is the same. */
export function changeOf(suite, row) {
  return ["regressed", "improved", "changed"].find((word) => suite[word].has(row.index)) ?? "";
}

export function differenceOf(suite, row, name) {
  const before = meanBefore(suite, row, name);
  const now = meanScore(suite, { counted: row.runs }, name);
  return before === null || now === null ? null : now - before;
}

const RANKS = { regressed: -4, changed: 0, "": 0, improved: 4 };

function rankOf({ row }, suite) {
  const by = suite.functions.map((name) => differenceOf(suite, row, name) ?? 0);
  const most = by.reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one), 0);
  return RANKS[changeOf(suite, row)] + (2 * Math.atan(most)) / Math.PI;
}

function natural(text) {
  const value = Number(text);
  return text !== "" && Number.isFinite(value) ? value : text.toLowerCase();
}

function ordered(items, suite, wish) {
  const key = keyOf(wish.sort, suite);
  const keyed = items.map((item, place) => [key(item), place, item]);
  const sign = wish.down ? -1 : 1;
  keyed.sort(([one, at], [other, there]) => {
    if (one === other) return at - there;
    if (one === null) return 1; // what is not known goes last in either order
    if (other === null) return -1;
    if (typeof one !== typeof other) return typeof one === "number" ? -sign : sign;
    return one < other ? -sign : sign;
  });
  return keyed.map(([, , item]) => item);
}
