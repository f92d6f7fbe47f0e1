"""What became of runs: `RunId`, `RunResult`, `RolloutRecord`, and `SuiteInfo`, what they are of.

Plain frozen values and their one form on disk and between processes: an ASCII JSON string, whatever
the text holds. `reports/` shows and writes them.

A further field of a run is a field of `RunResult` that `rollouts/rollout.py` fills; what is
measured of model calls comes there by its name from `measures` in `osmosis_ai/agents/client.py`.
Journal, JSON report, its schema and the tables of runs have a field of one value by themselves
(`RUN_FIELDS`); the HTML page shows those that `features/html/page/detail.js` names, and
`docs/reference/report.md` describes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from osmosis_ai.models.base import INVALID_TEXT
from osmosis_ai.models.errors import FATAL_KINDS, FINAL_KINDS
from osmosis_ai.secret import redact

from .escaping import encodable, score_text
from .outcomes import SKIPPED, Outcome, outcome_of

ErrorType = Literal["agent", "timeout", "provider", "eval_fn", "worker_lost", "internal"]


OWN_ACCOUNT: frozenset[str] = frozenset({"agent", "timeout", "eval_fn"})
"""Error types that the agent or an eval function caused; the others are infrastructure's."""

NO_REWARD = "no_reward"
"""The kind of error of a run that nothing scores: no eval function, no grader, no reward."""
NO_JUDGE = "no_judge"
"""The kind of error of a run whose judge has no key, or is refused for every run alike."""
JUDGE_FAILED = "judge_failed"
"""The kind of error of a run whose judge could not be reached, was overloaded, timed out, ..."""
NO_JUDGEMENT = frozenset({NO_JUDGE, JUDGE_FAILED})
"""Kinds of errors of runs that lack nothing but what a judge would have said."""
NOT_STREAMED = "not_streamed"
"""The kind of error of a run that ended while a call that is not streamed had no answer.

The endpoint may have been slow, or the answer long: it is counted as the endpoint's.
"""
WRONG_TOOLS = "wrong_tools"
"""The kind of error of a run whose agent gives tools that no model can be sent."""
WRONG_RETURN = "wrong_return"
"""The kind of error of a run whose agent returns a value of a type that is no answer."""
AT_FIRST = frozenset({NO_REWARD, WRONG_TOOLS, WRONG_RETURN})
"""Kinds of errors that end a session unless a run has a score by then."""
UNSCORABLE = frozenset({NO_JUDGE, *AT_FIRST})

OWN_MODEL = "its own model"
"""What stands for the model of a suite whose agent asks one of its own."""
EMBEDDED_ENDPOINT = "embedded endpoint"
"""The endpoint of a suite whose model is the one for trying things out: no host."""

CLUSTER = "cluster"
"""The setting of a suite that names the column by which its rows belong together."""

REPORT_FIELD = "osmosis"
"""The attribute of a pytest report that carries a run's result.

Between processes it is JSON, or the run alone where the result was sent ahead.
"""

SINGLE_FIELD = "osmosis_single"
"""The attribute of a worker's report that stands for the start and the finish of its item too."""

SUITE_FIELD = "osmosis_suite"
"""The attribute of the report of a run that was skipped before it began: its suite."""

ROLLOUT = "rollout"
"""The section of a failed test function's report that shows its conversation."""

DECIDED = "every gate is decided"
"""Why a session was stopped early; its runs that were not run are reported as skipped."""

ANSWER_LIMIT = 2000
"""Characters of the last assistant text that a report keeps, and of a score's reason."""


class RunId(NamedTuple):
    """The identity of one run within a session."""

    suite: str
    row_index: int
    run_index: int

    def position(self) -> dict[str, int]:
        """Return its row and run as graders and tests are given them."""
        return {"row_index": self.row_index, "run_index": self.run_index}


def may_differ(error_type: str | None, error_kind: str | None, *, fatal: bool = False) -> bool:
    """Return whether a run ended for a reason that repeating it may remove.

    `fatal`: see `RunResult`; the user removes it. A refusal that is not concerns one request.
    """
    if fatal:
        return True
    if error_type is None or error_type in OWN_ACCOUNT:
        return error_kind in NO_JUDGEMENT
    return not (error_type == "provider" and error_kind in FINAL_KINDS | FATAL_KINDS)


def is_counted(error_type: str | None, error_kind: str | None) -> bool:
    """Return whether a run that ended so counts in figures, be it as 0.0."""
    if error_kind in NO_JUDGEMENT or error_kind == SKIPPED:
        return False
    return error_type is None or error_type in OWN_ACCOUNT


def row_label(row_index: int, row_id: str | None) -> str:
    """Return what people call a row: its id, or its place in the file."""
    return row_id or f"row-{row_index}"


def whole_ms(milliseconds: float) -> int:
    """Return a duration as reports give it: whole milliseconds, at least one."""
    return max(1, round(milliseconds))


def place_of(model: str, endpoint: str) -> str:
    """Return what names a model at an endpoint."""
    return f"{model} at {endpoint}"


def is_ready_scorer(eval_fn: str) -> bool:
    """Return whether a name is that of a ready scorer with its settings, such as `judge('…')`."""
    name, bracket, _ = eval_fn.partition("(")
    return bool(bracket) and name.isidentifier()


def without_module(eval_fn: str) -> str:
    """Return an eval function's name without its module; settings may have a colon, too."""
    return eval_fn if is_ready_scorer(eval_fn) else eval_fn.rpartition(":")[2]


def short_names(eval_fn: str) -> tuple[str, str]:
    """Return what an eval function goes by in gates and thresholds, beside its whole name."""
    return without_module(eval_fn), eval_fn.partition("(")[0]


def passes(score: float | None, threshold: float) -> bool:
    """Return whether a score passes; no score (None or NaN) does not."""
    return score is not None and score >= threshold


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run of one row: what it scored, or why it has no score."""

    suite: str
    row_index: int
    run_index: int
    row_id: str | None = None
    success: bool = False
    """The agent finished and the endpoint answered; scores may still be missing."""
    passed: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    """Score per eval function; a function that raised or returned none is absent."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Pass thresholds of recorded scores and eval functions, of those that have their own."""
    error: str | None = None
    error_type: ErrorType | None = None
    error_kind: str | None = None
    """What kind of error the endpoint gave: "auth", "unreachable", "timeout", …"""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why it scored that, by eval function: what the function said, or the judge that it asked."""
    rubrics: Mapping[str, str] = field(default_factory=dict)
    """The digest of the rubric that a judge judged by, by eval function."""
    eval_errors: Mapping[str, str] = field(default_factory=dict)
    """Message per eval function that gave no score."""
    judge_errors: Mapping[str, str] = field(default_factory=dict)
    """Kind of error per eval function that has no score since its judge gave none."""
    answer: str | None = None
    finish_reason: str | None = None
    """Why the last completion ended, as the endpoint said."""
    answer_kind: str | None = None
    """What the last completion is, where it is no usual answer: "empty", "refused", "cut", …"""
    notes: str | None = None
    """What was sent, or is written, otherwise than asked: a parameter's name, invalid Unicode."""
    model: str | None = None
    started_at: float = 0.0
    """Wall clock, seconds since the epoch."""
    duration_ms: int = 0
    """Rollout and scoring; 0 is unknown."""
    llm_ms: int = 0
    tokens: int | None = None
    """Prompt and completion tokens together; None is unknown."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of the prompt tokens; None where no call told."""
    reasoning_tokens: int | None = None
    """Part of the completion tokens; None where no call told."""
    llm_calls: int = 0
    tool_calls: int = 0
    retries: int = 0
    cost_usd: float | None = None
    fatal: bool = False
    """The endpoint refuses every row alike: no further run should start."""
    clamped: int = 0
    """Scores of judges that lay outside of their bounds."""
    cached: bool = False
    """An earlier session ran it; the result is from its journal."""

    def __post_init__(self) -> None:
        """Hold no secret, and text that every file can: U+FFFD for half a character, and a note."""
        for name in _TEXTS:
            text = getattr(self, name)
            if not text:
                continue
            # A loop over the one text, so that no further function is called for each run.
            texts = {"": text} if isinstance(text, str) else text
            masked = {key: redact(each) for key, each in texts.items()}
            if not all(map(str.isascii, masked.values())):
                before = masked
                masked = {key: encodable(each) for key, each in before.items()}
                if masked != before:
                    self.note(INVALID_TEXT)
            object.__setattr__(self, name, masked[""] if isinstance(text, str) else masked)

    def note(self, note: str) -> None:
        """Add a note, once; to be called before the result is given to others."""
        if note not in (self.notes or "").split("; "):
            object.__setattr__(self, "notes", f"{self.notes}; {note}" if self.notes else note)

    def counted_score(self, eval_fn: str) -> float | None:
        """Return what the run counts for in an eval function's figures; None: it is left out.

        What the agent broke counts as 0.0, and what the function itself raised or returned wrongly.
        What the endpoint, a judge or a lost worker is to blame for says nothing of the agent.
        """
        score = self.scores.get(eval_fn)
        if score is not None or self.error_type is None:
            return score
        # Reports of earlier versions do not say whose judge it was.
        own = self.judge_errors and eval_fn not in self.judge_errors
        return 0.0 if own or is_counted(self.error_type, self.error_kind) else None

    @property
    def spent_usd(self) -> float | None:
        """Its cost: nothing where no call was answered, None where the price is not known."""
        if self.cost_usd is None and self.tokens == 0 and not self.llm_calls:
            return 0.0
        return self.cost_usd

    @property
    def run_id(self) -> RunId:
        """The run that this is the result of."""
        return RunId(self.suite, self.row_index, self.run_index)

    @property
    def outcome(self) -> Outcome:
        """What the run came to, whatever gates there are."""
        return outcome_of(self.error_type, self.error_kind, passed=self.passed)

    def to_json(self) -> str:
        """Return one line of ASCII JSON, without the fields that hold their default."""
        fields_held = zip(_NAMES, _values(self), _DEFAULTS, strict=True)
        return _encode({name: value for name, value, default in fields_held if value != default})

    @classmethod
    def from_json(cls, text: str) -> RunResult:
        """The result that `to_json` wrote."""
        return cls(**json.loads(text))


RUN_FIELDS: Mapping[str, type] = {
    each.name: {"int": int, "float": float, "bool": bool}.get(str(each.type).split(" ")[0], str)
    for each in fields(RunResult)
    if not str(each.type).startswith("Mapping")
}
"""The fields of a run that hold one value, and its type; some may be None."""

_TEXTS = ("answer", "error", "finish_reason", "reasons", "eval_errors", "judge_errors")


_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_NAMES = tuple(each.name for each in fields(RunResult))
_values = attrgetter(*_NAMES)
_DEFAULTS: Sequence[Any] = [
    {} if each.default_factory is dict else each.default for each in fields(RunResult)
]
"""What a field that is left out of the JSON holds; MISSING for those that never are."""


@dataclass(frozen=True)
class RolloutRecord:
    """A run that has ended: its result, and what is read from disk when it is needed again."""

    result: RunResult
    frames: str = ""
    """The user's frames, where something was raised."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    ground_truth: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reward: float | None = None
    sections: Sequence[tuple[str, str]] = ()
    """What the run printed and logged."""
    calls: Sequence[Mapping[str, Any]] = ()
    """Usage of each model call."""
    reasons: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What eval functions said of their scores, and judges, by eval function; all of it."""
    paid: RunResult | None = None
    """The result with the usage, where another suite's run has it: see `shared_with`."""

    def shared_with(self, suite: str) -> RolloutRecord:
        """The same rollout as a run of another suite, in which it costs nothing."""
        result = replace(
            self.result,
            suite=suite,
            tokens=0,
            prompt_tokens=0,
            completion_tokens=0,
            cached_tokens=None,
            reasoning_tokens=None,
            llm_calls=0,
            llm_ms=0,
            retries=0,
            cost_usd=None,
        )
        return replace(self, result=result, calls=(), paid=self.result)

    @cached_property
    def encoded(self) -> str:
        """The result as JSON: what is kept and what is sent is one and the same text."""
        return self.result.to_json()


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """What a suite is: the part of a spec that reports show."""

    name: str
    agent: str
    data: str
    model: str
    endpoint: str
    eval_fns: tuple[str, ...]
    n: int
    pass_threshold: float
    """Of every eval function that `thresholds` does not have."""
    rows: int
    """Rows of the evaluation, after offset, limit and sample."""
    digest: str
    """sha256 over those rows."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling, limits and timeouts, as given."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    scored_by_test: bool = False
    priced: bool = False
    """The model is a provider's, so that its price is looked for."""
    label: str = ""
    """What names it in its runs' node ids, where several suites run the same rows."""
    variant: str = ""
    """What its folder's name ends with, where it is kept beside the same evaluation."""
    leader: str | None = None
    """The first suite of the group that runs these rows; None of that one itself."""
    companion_of: str | None = None
    """The suite that this one is shown with: its own runs are observed, and decide nothing."""
    shares: str | None = None
    """The first of the suites of tests that have the same rollouts, maybe itself."""
    clusters: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The indices of the rows that belong together, by the value of a column that they share."""
    max_concurrent: int | None = None
    """How many of its runs its agent allows at once; None: any number."""

    @property
    def place(self) -> str:
        """Which model is asked where: its failures are looked at together."""
        return place_of(self.model, self.endpoint)

    @property
    def group(self) -> str:
        """The first suite of its group; its own name where it is alone."""
        return self.leader or self.name

    @property
    def cluster_column(self) -> str:
        """The column by which rows belong together; "" where they are independent."""
        return str(self.settings.get(CLUSTER, "")) if self.clusters else ""

    @property
    def cluster_of(self) -> Mapping[int, str]:
        """The cluster of each row, by its index."""
        return {row: name for name, rows in self.clusters.items() for row in rows}

    @property
    def total_runs(self) -> int:
        """Runs of the whole evaluation, before any selection."""
        return self.rows * self.n

    def is_quarantined(self, row_index: int, row_id: str | None) -> bool:
        """Return whether a row is run and shown, and left out of figures and gates."""
        labels = self.settings.get("quarantine", ())
        return bool(labels) and row_label(row_index, row_id) in labels

    @property
    def passing(self) -> str:
        """From which score on its runs pass."""
        own = [f"{name} from {score_text(at)}" for name, at in self.thresholds.items()]
        every = f"a run passes from {score_text(self.pass_threshold)}"
        return every + (f" ({', '.join(own)})" if own else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "eval_fns": list(self.eval_fns), "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteInfo:
        """Return the value that `to_dict` gave, without fields of later versions."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        return cls(**{**known, "eval_fns": tuple(data["eval_fns"])})


def selected_suites(
    infos: Mapping[str, SuiteInfo], selected: Counter[str]
) -> Iterator[tuple[SuiteInfo, int]]:
    """Yield each suite of which runs, or of its companion, are selected; and how many."""
    others = {info.companion_of for name, info in infos.items() if selected[name]}
    for name, info in infos.items():
        if selected[name] or name in others:
            yield info, selected[name]
