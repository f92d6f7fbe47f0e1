// One run: its scores, the answer against the ground truth, the conversation, what it took.
import { conversationOf, linkOf, outcomeOf } from "./data.js";
import { compared, held, markDifferences, markHeld } from "./diff.js";
import { traceback } from "./editor.js";
import { jsonTree, parsed } from "./json.js";
import { judgementOf } from "./judge.js";
import { markdown } from "./markdown.js";
import { foldAll, messagesOf, plainText, searchIn } from "./messages.js";
import {
  block,
  button,
  copied,
  copyButton,
  el,
  exact,
  line,
  number,
  seconds,
  visible,
} from "./text.js";

const LONG_ANSWER = 20_000;
const SHORT_TRUTH = 80;
let shown = null;
const panel = () => document.getElementById("detail");

/** Show a run; `go` has what the buttons do. */
export async function showRun({ suite, row, run }, go) {
  const at = panel();
  shown = run;
  at.hidden = false;
  document.getElementById("work").classList.add("split");
  const result = el("div", "");
  const said = el("div", "said", el("p", "soft", "reading …"));
  let found = null;
  let isRead = false;
  const draw = () => {
    result.replaceChildren(...resultOf(suite, row, run, found, go.isRaw()));
    if (isRead) said.replaceChildren(...saidOf(found, run, row, go));
  };
  at.replaceChildren(
    ...[
      headOf(run, go, draw),
      runsOf(suite, row, run),
      judgementOf(run, go.changed),
      result,
      said,
      factsOf(suite, row, run),
    ].filter(Boolean),
  );
  draw();
  at.scrollTop = 0;
  try {
    found = await conversationOf(run);
  } catch {
    said.replaceChildren(el("p", "soft", "The conversation cannot be read."));
    return;
  }
  if (shown !== run) return;
  isRead = true;
  draw();
}

export function hideRun() {
  panel().hidden = true;
  document.getElementById("work").classList.remove("split");
}

function headOf(run, go, draw) {
  const title = el("h3", "", el("span", `badge ${run.outcome}`, run.outcome), " ", run.name);
  title.id = "detail-title";
  const link = button("Link", "Copy the link of this run", async () => {
    link.textContent = (await copied(go.link())) ? "Copied" : "No clipboard";
  });
  const raw = button("Raw", "Text as it came, without Markdown and trees", () => {
    go.setRaw(!go.isRaw());
    raw.setAttribute("aria-pressed", go.isRaw());
    draw();
  });
  raw.setAttribute("aria-pressed", go.isRaw());
  const close = button("✕", "Close", go.close);
  close.classList.add("close");
  return el(
    "div",
    "head",
    title,
    el(
      "div",
      "buttons",
      button("↑", "Previous run (k)", () => go.step(-1)),
      button("↓", "Next run (j)", () => go.step(1)),
      raw,
      link,
      close,
    ),
  );
}

function runsOf(suite, row, run) {
  if (row.runs.length < 2) return null;
  const items = row.runs.map((each) => {
    const link = el("a", each.outcome, `run-${each.run_index}`);
    link.href = linkOf(suite, row, each);
    link.title = each.outcome;
    if (each === run) link.setAttribute("aria-current", "true");
    return el("li", "", link);
  });
  const found = el("nav", "siblings", el("ul", "", ...items));
  found.setAttribute("aria-label", visible(`Runs of ${row.name}`));
  return found;
}

function resultOf(suite, row, run, said, isRaw) {
  return [
    row.other?.length ? section("Question", block(row.question), row.question) : null,
    run.error
      ? el(
          "div",
          "problem",
          el("p", "label", [run.error_type, run.error_kind].filter(Boolean).join(": ")),
          block(run.error),
        )
      : null,
    scoresOf(suite, run, said?.reasons),
    comparedOf(run, said?.ground_truth ?? row.truth, isRaw),
    besideOf(row, run, said, isRaw),
  ].filter(Boolean);
}

function section(title, content, isThere = true) {
  return isThere ? el("div", "part", el("h4", "", title), content) : null;
}

function scoresOf(suite, run, reasons) {
  const lines = suite.functions.map((name) => {
    const state = outcomeOf(run, suite, name);
    const texts = [run.eval_errors?.[name], reasons?.[name] ?? run.reasons[name]].flat();
    return el(
      "tr",
      "",
      el("th", "", el("code", "", name)),
      el("td", `num ${state}`, exact(run.scores[name]) + least(suite, name)),
      el("td", "reason", ...texts.filter(Boolean).map((text) => block(String(text)))),
    );
  });
  const heads = el(
    "tr",
    "",
    el("th", "", "eval function"),
    el("th", "num", `score (≥ ${exact(suite.threshold)})`),
    el("th", "", "reason"),
  );
  return el("table", "scores", el("thead", "", heads), el("tbody", "", ...lines));
}

/** The pass threshold of a function that has its own. */
function least(suite, name) {
  return name in suite.own ? ` (≥ ${exact(suite.own[name])})` : "";
}

/** The answer, and what was expected: beside it, or above it where that is short. */
function comparedOf(run, truth, isRaw) {
  const answer = run.answer ?? "";
  const found = el("div", "part compared");
  if (!truth && !answer) return found;
  const [left, right] = truth ? held(truth, answer) : [[], [answer]];
  const own = answer ? answerBlock(right, answer, isRaw) : el("p", "soft", "no answer");
  found.append(
    el(
      "div",
      truth?.length > SHORT_TRUTH ? "pair" : "",
      truth ? el("div", "", el("h4", "", "Ground truth"), answerBlock(left, truth, isRaw)) : null,
      el("div", "own", el("h4", "", "Answer"), own),
    ),
  );
  if (truth && answer) markHeld(truth, own);
  return found;
}

/** A text as it is read best: a tree, Markdown, or, where it is neither or raw, these nodes. */
function answerBlock(nodes, text, isRaw) {
  if (text.length > LONG_ANSWER) return block(text, "answer");
  const value = !isRaw && /^\s*[[{]/.test(text) ? parsed(text) : undefined;
  const parts = isRaw || value !== undefined ? [] : markdown(text);
  const isPlain = parts.map((each) => each.textContent).join("\n\n") === text.trim();
  const shown = value !== undefined ? [jsonTree(value)] : parts.length && !isPlain ? parts : nodes;
  const found = el("div", shown === parts ? "answer rendered" : "answer", ...shown);
  if (text.length > 200) found.tabIndex = 0; // it may scroll
  found.dir = "auto";
  return found;
}

/** The run beside another one of its row: of the other side at first, or of this evaluation. */
function besideOf(row, run, said, isRaw) {
  const { word, title } = row.against;
  const before = (row.other ?? []).map((each) => [
    `${word}, run-${each.run_index}`,
    each,
    [title, "Current"],
  ]);
  const here = row.runs.filter((each) => each !== run).map((each) => [`run-${each.run_index}`, each]);
  const others = [...before, ...here];
  if (!others.length) return null;
  const select = el("select", "", el("option", "", "no other"));
  others.forEach(([name, each], place) => {
    const option = el("option", "", `${name}: ${each.outcome}`);
    option.value = place;
    select.append(option);
  });
  const at = el("div");
  const show = () => {
    beside = { run, value: select.value };
    const other = others[select.value];
    at.replaceChildren(...(other ? [pairOf(run, said, isRaw, ...other)] : []));
    if (other) markDifferences(at.querySelectorAll(".pair .answer"));
  };
  select.addEventListener("change", show);
  if (before.length) select.value = firstBeside(before, run);
  if (beside?.run === run) select.value = beside.value;
  show();
  return el("div", "part", el("label", "with", "compare with ", select), at);
}

let beside = null;

/** The run of the other side to begin with: one that shows the change, else that of its number. */
function firstBeside(before, run) {
  const same = before.findIndex(([, each]) => each.run_index === run.run_index);
  if (same >= 0 && before[same][1].passed !== run.passed) return same;
  const other = before.findIndex(([, each]) => each.passed !== run.passed);
  return Math.max(0, other >= 0 ? other : same);
}

function pairOf(run, said, isRaw, name, other, titles = [name, `run-${run.run_index}`]) {
  const [left, right] = compared(other.answer ?? "", run.answer ?? "");
  const side = (title, each, nodes, calls) =>
    el(
      "div",
      "",
      el(
        "h4",
        "",
        `${title} `,
        el("span", `state ${each.outcome}`, each.outcome),
        ` ${Object.values(each.scores).map(exact).join(", ")}`,
      ),
      each.error
        ? el("div", "answer", el("span", "error", each.error))
        : answerBlock(each.answer ? nodes : [el("span", "soft", "no answer")], each.answer ?? "", isRaw),
      toolsOf(calls),
    );
  const [title, own] = titles;
  const calls = other.row.runs.includes(other) ? [] : (other.tools ?? []);
  return el("div", "pair", side(title, other, left, calls), side(own, run, right, calls.length ? callsOf(said) : []));
}

/** The tools that a conversation called, with their arguments. */
function callsOf(said) {
  return (said?.messages ?? [])
    .flatMap((message) => message.tool_calls ?? [])
    .map(({ function: asked }) => `${asked?.name ?? "?"}(${asked?.arguments ?? ""})`);
}

function toolsOf(calls) {
  if (!calls.length) return null;
  return el("ol", "calls", ...calls.map((each) => el("li", "", el("code", "", `→ ${line(each, 200)}`))));
}

/** Whether the conversation has the question already, as it does unless an agent changes it. */
function isSaid(question, said) {
  const start = question.slice(0, 1_900);
  return (said?.messages ?? []).some(
    ({ role, content }) => role === "user" && typeof content === "string" && content.startsWith(start),
  );
}

function saidOf(said, run, row, go) {
  const found = [];
  const isAsked = row.other?.length || isSaid(row.question, said);
  if (!isAsked && row.question) found.push(section("Question", block(row.question)));
  if (said?.frames) found.push(section("Traceback", traceback(said.frames)));
  if (!said?.messages) {
    const why = said
      ? "No message was kept of this run."
      : "The conversation of this run is not on this page.";
    found.push(el("p", "soft", why));
    return found;
  }
  const list = messagesOf(said, go.isRaw(), run.answer);
  const unfold = button("Expand all", "Open all that is folded", () => {
    const isOpen = unfold.getAttribute("aria-pressed") !== "true";
    foldAll(list, isOpen);
    unfold.setAttribute("aria-pressed", isOpen);
  });
  unfold.setAttribute("aria-pressed", false);
  const words = el("input", "within");
  words.type = "search";
  words.placeholder = "search in it";
  words.setAttribute("aria-label", "Search in the conversation");
  const count = el("output", "soft");
  words.addEventListener("input", () => {
    const number = searchIn(list, words.value);
    count.textContent = words.value.trim() ? `${number} of ${list.children.length} messages` : "";
  });
  const copy = copyButton("Copy the whole conversation", () => plainText(said));
  found.push(el("div", "reading", el("h4", "", "Conversation"), unfold, copy, words, count), list);
  return found;
}

function factsOf(suite, row, run) {
  const facts = [
    [
      "time",
      run.duration_ms
        ? `${seconds(run.duration_ms)}${run.llm_ms ? `, of that ${seconds(run.llm_ms)} in the model` : ""}`
        : null,
    ],
    [
      "tokens",
      run.tokens == null
        ? null
        : `${number(run.tokens)} (${number(run.prompt_tokens)} in, ${number(run.completion_tokens)} out)`,
    ],
    ["cached", run.cached_tokens == null ? null : number(run.cached_tokens)],
    ["reasoning", run.reasoning_tokens == null ? null : number(run.reasoning_tokens)],
    ["cost", run.cost_usd == null ? null : `$${run.cost_usd.toFixed(6)}`],
    [
      "model calls",
      run.llm_calls ? `${run.llm_calls}${run.retries ? `, ${run.retries} retries` : ""}` : null,
    ],
    ["calls of tools", run.tool_calls || null],
    ["ended with", run.finish_reason],
    ["answer", run.answer_kind],
    ["note", run.notes],
    ["model", run.model],
    ["started", run.started_at ? when(run.started_at) : null],
    ["from", run.cached ? "an earlier session" : null],
    ...suite.columns.map((name, place) => [name, line(row.values?.[place] ?? "", 400)]),
  ];
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const item = nodeId(suite, row, run);
  const list = el(
    "dl",
    "facts",
    ...known.flatMap(([name, value]) => [el("dt", "", name), el("dd", "", String(value))]),
  );
  return el(
    "div",
    "part",
    el("h4", "", "Facts"),
    list,
    el("h4", "", "Run it again"),
    ...againOf(suite, row, run, item).map((text) =>
      el("p", "node", el("code", "", text), " ", copyButton("Copy this command", () => text)),
    ),
  );
}

/** Commands that run this row again: as a new evaluation, and by the name that pytest knows it by. */
function againOf(suite, row, run, item) {
  const byName = `pytest ${quoted(item)}`;
  if (suite.is_test || !suite.agent) return [byName];
  const words = ["osmosis", "eval", "-m", suite.agent, "-d", suite.data];
  for (const name of suite.scorers) words.push("--eval-fn", name);
  if (suite.model && !suite.is_own) words.push("--model", suite.model);
  if (suite.endpoint) words.push("--base-url", suite.endpoint);
  if (suite.threshold !== 1) words.push("--pass-threshold", String(suite.threshold));
  for (const [name, asked] of Object.entries(suite.asked)) {
    for (const each of [asked].flat()) {
      const value = name === "seed" ? each + run.run_index : each; // each run has its own
      words.push(`--${name.replaceAll("_", "-")}`, String(value));
    }
  }
  words.push("--rows", row.id ?? String(row.index), "--n", "1", "--no-journal");
  return [words.map(quoted).join(" "), byName];
}

/** A word as a shell takes it. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function when(at) {
  if (!(at > 0 && at < 1e11)) return null;
  return `${new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19)} UTC`;
}

function nodeId(suite, row, run) {
  if (suite.is_test) return `${suite.name}[${row.name}-run-${run.run_index}]`;
  const label = suite.label ? `[${suite.label}]` : "";
  return `${suite.group}::${row.name}${label}[run-${run.run_index}]`;
}
