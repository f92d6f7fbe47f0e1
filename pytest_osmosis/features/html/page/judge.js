// What people say of runs: right or wrong, and a note. A served page alone has a place to keep it.
import { page } from "./data.js";
import { button, el } from "./text.js";

/** Read what was said of the runs of the page, into them. */
export async function readJudgements() {
  if (!page.labels) return;
  const answer = await fetch(page.labels, { cache: "no-store" });
  if (!answer.ok) return;
  const said = new Map((await answer.json()).map((each) => [placeOf(each), each]));
  for (const run of page.suites.flatMap((suite) => suite.rows.flatMap((row) => row.runs))) {
    const known = said.get(placeOf(run));
    const isOfIt = known && (known.started_at === null || known.started_at === run.started_at);
    run.judged = isOfIt ? known : null;
  }
}

function placeOf({ suite, row_index, run_index }) {
  return `${row_index}/${run_index}/${suite}`;
}

/** Whether what people say of a run is what is wanted of it. */
export function isJudged(run, wanted) {
  const right = run.judged?.is_right ?? null;
  if (wanted === "unmarked") return right === null;
  if (wanted === "differs") return right !== null && right !== run.passed;
  return right === (wanted === "right");
}

export const JUDGED = [
  ["right", "marked right"],
  ["wrong", "marked wrong"],
  ["differs", "marked otherwise than scored"],
  ["unmarked", "not marked"],
];

/** Right, wrong and a note, to be said of a run; null where the page is a file. */
export function judgementOf(run, changed) {
  if (!page.labels) return null;
  const right = button("Right", "A person calls this run right (r)", () => mark(true));
  const wrong = button("Wrong", "A person calls this run wrong (w)", () => mark(false));
  const note = el("input", "remark-of-it");
  note.placeholder = "why";
  note.maxLength = 10_000;
  note.setAttribute("aria-label", "Note on this run");
  note.value = run.judged?.note ?? "";
  const state = el("span", "soft");
  state.setAttribute("role", "status");
  const draw = () => {
    right.setAttribute("aria-pressed", run.judged?.is_right === true);
    wrong.setAttribute("aria-pressed", run.judged?.is_right === false);
  };
  const keep = async (isRight) => {
    const said = {
      suite: run.suite,
      row_index: run.row_index,
      run_index: run.run_index,
      is_right: isRight,
      note: note.value,
      started_at: run.started_at ?? null,
    };
    let isKept = false;
    try {
      const answer = await fetch(page.labels, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(said),
      });
      isKept = answer.ok;
    } catch {
      isKept = false; // the server has ended
    }
    state.textContent = isKept ? "kept" : "not kept: osmosis eval view has ended";
    if (isKept) run.judged = said;
    draw();
    changed();
  };
  const mark = (isRight) => keep(run.judged?.is_right === isRight ? null : isRight);
  note.addEventListener("change", () => keep(run.judged?.is_right ?? null));
  draw();
  const found = el("div", "judgement", el("span", "label", "people"), right, wrong, note, state);
  found.mark = mark;
  return found;
}
