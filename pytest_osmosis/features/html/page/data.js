// The rows and runs of the page, and the conversations, which are read when they are opened.
export const page = { suites: [], parts: [], read: new Map(), conversations: "", events: "", labels: "" };

/** What a run may have come to, the best first, as in outcomes.py: sign, and meaning. */
export const OUTCOMES = {
  passed: ["✓", "passed"],
  below: ["-", "below the threshold"],
  raised: ["✕", "raised: the agent's code"],
  timeout: ["~", "timeout: the agent's time"],
  error: ["!", "error: no score"],
  "not run": ["·"],
};

/** The text of one part: base64 of zlib's format. */
export async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** Read what a document holds: this one, or a newer one of the same address. */
export async function load(from) {
  const data = from.getElementById("data");
  const suites = JSON.parse(await inflated(data.textContent.trim()));
  const places = JSON.parse(await inflated(from.getElementById("places").textContent.trim()));
  const runs = suites.flatMap((suite) => suite.rows.flatMap((row) => row.runs));
  runs.forEach((run, number) => {
    run.at = places[number] || null;
  });
  suites.forEach(prepare);
  page.suites = suites;
  page.parts = from.getElementById("conversations").textContent.trim().split("\n");
  page.read.clear();
  page.conversations = data.dataset.conversations ?? "";
  page.events = data.dataset.events ?? "";
  page.labels = data.dataset.labels ?? "";
}

function prepare(suite, number) {
  suite.number = number + 1;
  for (const word of ["regressed", "improved", "changed"]) suite[word] = new Set(suite[word]);
  for (const row of suite.rows) {
    row.name = row.id ?? `row-${row.index}`;
    row.question ??= "";
    row.low = [row.name, row.question, row.truth ?? "", ...(row.values ?? [])]
      .join("\n")
      .toLowerCase();
    for (const run of row.runs) prepareRun(suite, row, run);
    row.against = suite.against ?? { word: "other", title: "Other" };
    for (const run of row.other ?? []) prepareRun(suite, row, run);
  }
}

function prepareRun(suite, row, run) {
  run.row = row;
  run.scores ??= {};
  run.reasons ??= {};
  run.name =
    suite.n === 1 && row.runs.length === 1 ? row.name : `${row.name}[run-${run.run_index}]`;
  const said = [run.answer, run.error, run.error_kind, ...Object.values(run.reasons)];
  run.low = said.filter(Boolean).join("\n").toLowerCase();
}

/** What a run came to in one eval function, or in all; "" where no recorded score says it. */
export function outcomeOf(run, suite, name) {
  if (!name) return run.outcome;
  const score = run.scores[name];
  const threshold = { ...suite.own, ...suite.thresholds }[name] ?? suite.threshold;
  if (name in suite.thresholds && (score === undefined || suite.thresholds[name] === null))
    return "";
  if (score === undefined)
    return ["raised", "timeout"].includes(run.outcome) ? run.outcome : "error";
  if (score >= threshold) return "passed";
  return "below";
}

export function linkOf(suite, row, run) {
  const at = suite.number > 1 ? `${suite.number}/` : "";
  return `#${at}row-${row.index}${run ? `/run-${run.run_index}` : ""}`;
}

/** The suite, row and run that an address names; null where it names none. */
export function placed(hash) {
  const match = /^#(?:(\d+)\/)?row-(\d+)(?:\/run-(\d+))?(?:\?|$)/.exec(hash);
  if (!match) return null;
  const suite = page.suites[Number(match[1] ?? 1) - 1];
  const row = suite?.rows.find((each) => each.index === Number(match[2]));
  if (!row) return null;
  const wanted = match[3] === undefined ? null : Number(match[3]);
  const run =
    wanted === null
      ? (row.runs.find((each) => !each.passed) ?? row.runs[0])
      : row.runs.find((each) => each.run_index === wanted);
  return run ? { suite, row, run } : null;
}

/** What was said in a run; null where the page does not hold it. */
export async function conversationOf(run) {
  if (run.at) {
    const [part, place] = run.at;
    if (!page.read.has(part)) page.read.set(part, inflated(page.parts[part]).then(JSON.parse));
    return (await page.read.get(part))[place];
  }
  if (!page.conversations) return null;
  const wanted = new URLSearchParams({ suite: run.suite, row: run.row_index, run: run.run_index });
  const answer = await fetch(`${page.conversations}?${wanted}`);
  return answer.ok ? answer.json() : null;
}
