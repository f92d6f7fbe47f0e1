"""The table of options and their ini twins, in the groups and the order of help.

An option that fills a field of the spec names it, and needs no more than its entry here. Those of
features are added by `features/table.py`, from which the whole table is imported.

Every pytest session imports this. `registration` adds them to pytest's parser, `reader` reads what
was given; `build_spec`, which makes the spec of a session of it, is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..dataset.formats import SUFFIXES_SHOWN
from ..reports.formats import (
    CONFIG_FIELDS,
    REPORTS,
    SECTIONS,
    ConfigField,
    ReportFormat,
    SectionFormat,
)
from . import values

Reach = Literal["model", "endpoint", "usage", "turns", "system", "program"]
"""What of an agent an option changes: see `Agent.reach`; "usage" is what is known of its calls."""
FIRST = "what is evaluated"
"""The title of the first group of options."""


@dataclass(frozen=True)
class Option:
    """One option: `--osmosis-<name>` on the command line, `osmosis_<name>` in the ini file."""

    name: str
    help: str
    parse: Callable[[str], Any] = values.any_text
    default: Any = None
    metavar: str | None = None
    short: str | None = None
    """A short spelling, registered unless another plugin has it."""
    repeatable: bool = False
    flag: bool = False
    const: str | None = None
    """The value of the option where it is given without one."""
    ini: str | None = None
    """The ini name where it is not `osmosis_<name>`."""
    is_path: bool = False
    """Its value is a file or folder, from the current directory, or from the root in the ini."""
    fills: str | None = None
    """The field of the spec that has its value: `part.field`, by the parts of `build_spec`."""
    needs: tuple[str, ...] = ()
    """Options of which one is given too, else it has no effect."""
    serves: tuple[str, ...] = ()
    """Options that have an effect beside it too, without what they need otherwise."""
    excludes: tuple[str, ...] = ()
    """Options that are not given beside it, wherever they stand."""
    replaces: tuple[str, ...] = ()
    """Options without effect beside it: those of the ini file are not read where it is given."""
    names_evaluation: bool = False
    """Whether it says alone what is evaluated, in the place of an agent and data."""
    reaches: Reach | None = None
    """What of an agent it changes, and that one agent at least must therefore have."""

    @property
    def flag_name(self) -> str:
        """The canonical spelling."""
        return f"--osmosis-{self.name}"

    @property
    def dest(self) -> str:
        """The attribute on pytest's option object."""
        return "osmosis_" + self.name.replace("-", "_")

    @property
    def ini_name(self) -> str:
        """The key in the ini file."""
        return self.ini or self.dest

    @property
    def ini_twin(self) -> str | None:
        """The same key in the singular, or in the plural: both mean the same."""
        if not self.repeatable or self.name == "data":
            return None
        name = self.ini_name
        return name.removesuffix("s") if name.endswith("s") else f"{name}s"


@dataclass(frozen=True)
class OptionSet:
    """Options of a feature that stand together in one group of help."""

    group: str
    options: tuple[Option, ...]
    after: str | None = None
    """The option behind which they stand; of a new group, the group. "": first; None: last."""


@dataclass(frozen=True)
class FeatureEntry:
    """What every pytest session knows of a feature."""

    name: str
    """Of its folder, and of its part of the spec."""
    options: Sequence[OptionSet] = ()
    read: Callable[[Any], Any] = lambda given: None
    """Returns its part of the spec, from an `OptionReader`; None where it is not asked for."""
    feature: str = ""
    """The class of `session/seams.py` in the module `feature` of its folder, if it has one."""
    report: ReportFormat | None = None
    """The report that it is; one of its options asks for it."""
    load: Callable[[Any], Sequence[str]] = lambda config: ()
    """Acts before any conftest.py is loaded, on pytest's config; returns lines of the header."""
    change_arguments: Callable[[Any], None] = lambda config: None
    """Changes arguments and options of pytest's config, before any of them is used."""
    begins: Callable[[Any], bool] = lambda config: False
    """Returns whether tests are an evaluation, by pytest's config, where no data file is one."""
    runs_elsewhere: Callable[[Any], bool] = lambda given: False
    """Returns, by an `OptionReader`, whether processes of its own run the rollouts."""
    lacking: Callable[[Any, str], Iterable[str]] = lambda given, label: ()
    """Returns what a run with this label in its node id needs besides what is given."""
    section: SectionFormat | None = None
    """The section that it adds to suites."""
    config_fields: Sequence[ConfigField] = ()
    """What it adds to what the JSON report says was asked."""
    register: Callable[[], None] = lambda: None
    """Adds what is known of it before any option is read, such as names that gates may use."""


def report_option(report: ReportFormat) -> Option:
    """Return the option that asks for a report."""
    return Option(report.option, report.help, metavar="FILE", is_path=True)


_EVALUATED = (
    Option(
        "agent",
        "the agent under test, module:attribute or path/to/file.py:attribute: a RolloutAgentLoop "
        "or an AgentWorkflow, a function of the question or of ctx, cmd:'a command line', or "
        "mcp:FOLDER for the tools of an MCP server; several are compared (default: chat, one call "
        "of the model with the row's messages)",
        metavar="MODULE:ATTR",
        repeatable=True,
    ),
    Option(
        "grader",
        "Grader class that scores rollouts (default: the one in the workflow's module)",
        metavar="MODULE:GRADER",
        fills="evaluation.grader",
        needs=("data",),
    ),
    Option(
        "data",
        f"dataset to evaluate on: {SUFFIXES_SHOWN}; or hf://datasets/OWNER/NAME/PATH",
        metavar="FILE",
        repeatable=True,
    ),
    Option(
        "map",
        "which column of the dataset serves as which, such as question=user_prompt; "
        "none=system_prompt sends no system message",
        values.column_map,
        metavar="COLUMN=NAME",
        repeatable=True,
    ),
    Option(
        "prompt-template",
        "the user prompt out of several columns, a Jinja2 template such as "
        "'{{ question }} {{ hint }}'; =@FILE reads it from a text file",
        str,
        metavar="TEXT|@FILE",
    ),
    Option(
        "where",
        "evaluate only rows with this value in a column, such as lang=en, or with another, "
        "lang!=en; several hold together",
        values.condition,
        metavar="COLUMN=VALUE",
        repeatable=True,
        fills="evaluation.where",
    ),
    Option(
        "system-prompt",
        "the system prompt of rows without one, which need no such column then; it may be empty",
        str,
        metavar="TEXT",
        fills="evaluation.system_prompt",
        reaches="system",
        excludes=("system-prompt-file",),
    ),
    Option(
        "system-prompt-file",
        "the same, from a text file",
        metavar="FILE",
        is_path=True,
        reaches="system",
    ),
    Option(
        "eval-fn",
        "eval function that scores a rollout; without one the rollout's own reward is the score",
        metavar="MODULE:FUNCTION",
        short="--eval-fn",
        repeatable=True,
        needs=("data",),
    ),
    Option(
        "strip-reasoning",
        "give eval functions the answer without its reasoning (<think>…</think> before it), as "
        "ready scorers look at it",
        flag=True,
        needs=("eval-fn",),
    ),
    Option(
        "n",
        "runs per row",
        values.whole_number(1),
        1,
        metavar="N",
        short="--n",
        fills="evaluation.n",
    ),
    Option(
        "pass-threshold",
        "minimum score for a run to pass, 1 unless it is given; style=0.5: of one eval function",
        values.threshold,
        metavar="[EVAL_FN=]SCORE",
        short="--pass-threshold",
        repeatable=True,
    ),
    Option(
        "limit",
        "evaluate only this many rows",
        values.whole_number(1),
        metavar="N",
        fills="evaluation.limit",
    ),
    Option(
        "offset",
        "skip this many rows first",
        values.whole_number(0),
        0,
        metavar="N",
        fills="evaluation.offset",
    ),
    Option(
        "rows",
        "evaluate only these rows, such as 3,7,10-20, or with results.json those of a JSON report",
        values.row_indices,
        metavar="ROWS|REPORT",
        replaces=("limit", "offset", "sample"),
    ),
    Option(
        "sample",
        "draw this many rows at random: a number or a share such as 10%%",
        values.share,
        metavar="N|P%",
        fills="evaluation.sample",
    ),
    Option(
        "sample-seed",
        "seed of --osmosis-sample",
        values.whole_number(0),
        0,
        metavar="S",
        fills="evaluation.sample_seed",
        needs=("sample",),
    ),
    Option(
        "shard",
        "evaluate the I-th of K shards of the rows; `osmosis eval merge` joins their reports",
        values.part,
        metavar="I/K",
        fills="evaluation.part",
    ),
    Option(
        "only",
        "collect only the evaluation, not ordinary tests",
        flag=True,
        needs=("data",),
    ),
    Option(
        "run",
        "when the evaluation of the ini file runs: 'always', or 'explicit': only with -m osmosis, "
        "its data file or a node id in it, or an agent on the command line",
        values.one_of("always", values.EXPLICIT),
        "always",
        metavar="WHEN",
    ),
)

_MODEL = (
    Option(
        "model",
        "model name at --osmosis-base-url, LiteLLM's provider/model without one, "
        "or 'embedded' for the endpoint that is shipped for trying things out; several are "
        "compared",
        metavar="NAME",
        repeatable=True,
        reaches="model",
    ),
    Option(
        "base-url",
        "an OpenAI-compatible endpoint, e.g. http://localhost:8000/v1",
        metavar="URL",
        reaches="endpoint",
    ),
    Option(
        "api-key-env",
        "name of the environment variable that holds the API key "
        "(OPENAI_API_KEY with a base URL, else the provider's own)",
        metavar="NAME",
        reaches="endpoint",
    ),
    Option(
        "api-key",
        "the API key itself; prefer --osmosis-api-key-env, argv is world-readable",
        metavar="KEY",
        reaches="endpoint",
        replaces=("api-key-env",),
    ),
    Option(
        "header",
        "a header of each call of the model; $VARIABLE as VALUE is read from the environment, and "
        "masked in all output",
        values.header,
        metavar="NAME=VALUE",
        repeatable=True,
        reaches="endpoint",
    ),
    Option(
        "extra-body",
        "further fields of each request, as a JSON object, such as "
        '\'{"chat_template_kwargs": {"enable_thinking": false}}\'',
        values.json_object,
        metavar="JSON",
        fills="model.extra_body",
        reaches="endpoint",
    ),
    Option(
        "price-per-mtok",
        "dollars per million tokens of prompts, of completions and, where it is another, of cached "
        "prompts, where no price is known",
        values.prices,
        metavar="IN,OUT[,CACHED]",
        reaches="usage",
    ),
    Option(
        "pass-env",
        "give command agents this environment variable although it holds a model's key",
        metavar="NAME",
        repeatable=True,
        fills="session.pass_env",
        reaches="program",
    ),
)

_SAMPLING = (
    Option(
        "temperature",
        "sampling temperature (not sent unless given)",
        values.number("a number of at least 0", lambda value: value >= 0),
        metavar="T",
        fills="sampling.temperature",
        reaches="endpoint",
    ),
    Option(
        "top-p",
        "nucleus sampling (not sent unless given)",
        values.number("a number above 0 and at most 1", lambda value: 0 < value <= 1),
        metavar="P",
        fills="sampling.top_p",
        reaches="endpoint",
    ),
    Option(
        "max-tokens",
        "max tokens per model reply, sent as max_tokens (not sent unless given)",
        values.whole_number(1),
        metavar="N",
        fills="sampling.max_tokens",
        reaches="endpoint",
    ),
    Option(
        "seed",
        "base sampling seed; run i of a row is sent S + i (not sent unless given)",
        values.whole_number(0),
        metavar="S",
        fills="model.seed",
        reaches="endpoint",
    ),
)

_LIMITS = (
    Option(
        "batch-size",
        "rollouts in flight at once, over all workers (default: 1, or W with -n W)",
        values.whole_number(1),
        metavar="B",
        short="--batch-size",
    ),
    Option(
        "max-turns",
        "max model calls per rollout; the agent gets it as request.max_turns, and must obey it",
        values.whole_number(1),
        10,
        metavar="N",
        fills="evaluation.max_turns",
        reaches="turns",
    ),
    Option(
        "agent-timeout",
        "seconds that the agent may take for one run",
        values.positive_seconds,
        450.0,
        metavar="S",
        fills="evaluation.agent_timeout_s",
    ),
    Option(
        "grader-timeout",
        "seconds that each eval function may take for one run",
        values.positive_seconds,
        150.0,
        metavar="S",
        fills="evaluation.grader_timeout_s",
    ),
    Option(
        "import-timeout",
        "seconds that the import of an agent's or an eval function's module may take; 0 is none",
        values.number("a number of seconds, or 0", lambda value: value >= 0),
        60.0,
        metavar="S",
        fills="session.import_timeout_s",
    ),
    Option(
        "worker-timeout",
        "restart a worker process that sends no heartbeat for this many seconds",
        values.positive_seconds,
        30.0,
        metavar="S",
        fills="session.worker_timeout_s",
    ),
)

_GATES = (
    Option(
        "gate",
        'condition that decides the exit status, such as "pass@5 >= 0.9"; '
        "runs below the threshold do not fail then",
        metavar="GATE",
        repeatable=True,
        ini="osmosis_gates",
    ),
    Option(
        "confidence",
        "confidence level of all intervals (0.95 in the summary unless given); if given, a gate "
        "passes only if its whole interval does, and 'none' holds gates on a difference at the "
        "difference itself",
        values.confidence,
        metavar="C|none",
        fills="deciding.confidence",
    ),
)

_REPORTS = (
    *map(report_option, REPORTS),
    Option(
        "trajectories",
        "write whole conversations here, as trajectories.jsonl "
        "(default: beside the JSON report, unless --osmosis-no-answers)",
        metavar="DIR",
        is_path=True,
    ),
    Option("no-answers", "leave the last assistant texts out of the reports", flag=True),
    Option(
        "debug-dir",
        "write the events that agents log, one JSONL file a rollout, here",
        metavar="DIR",
        is_path=True,
    ),
)

_RESUMING = (
    Option(
        "resume",
        "require resuming: fail if the kept evaluation does not match",
        flag=True,
        fills="keeping.resume",
    ),
    Option(
        "extend",
        "use the runs of the kept evaluation although it has ended, also for more runs or rows",
        flag=True,
        fills="keeping.extend",
    ),
    Option(
        "fresh",
        "ignore kept results and run everything; the old evaluation is archived",
        flag=True,
        fills="keeping.fresh",
        excludes=("resume", "extend", "retry-failed"),
    ),
    Option(
        "retry-failed",
        "resume, and run again what has no score; =all: also runs below the threshold",
        values.one_of("errors", "all"),
        metavar="all",
        const="errors",
        fills="keeping.retry",
    ),
    Option(
        "inputs",
        "files that the agent reads, such as prompts: when one changes, no kept run is used",
        metavar="GLOB",
        repeatable=True,
    ),
    Option(
        "run-dir",
        "keep evaluations here (default: .osmosis/runs in the root directory)",
        metavar="DIR",
        is_path=True,
        fills="keeping.run_dir",
    ),
    Option(
        "no-journal",
        "keep no journal: the evaluation cannot be resumed",
        flag=True,
        excludes=("resume", "extend", "retry-failed"),
        replaces=("inputs",),
    ),
)

GROUPS: dict[str, tuple[Option, ...]] = {
    FIRST: _EVALUATED,
    "the model": _MODEL,
    "sampling": _SAMPLING,
    "limits": _LIMITS,
    "gates": _GATES,
    "reports": _REPORTS,
    "resuming": _RESUMING,
}
"""The options by the title of their group."""

FEATURES: list[FeatureEntry] = []
OPTIONS: list[Option] = []
BY_NAME: dict[str, Option] = {}
SPELLINGS: set[str] = set()
REPLACED_BY: dict[str, list[str]] = {}
"""What on the command line stands in the place of an option of the ini file."""


def add_features(features: Iterable[FeatureEntry]) -> None:
    """Add features, and have their options stand among the others."""
    for feature in features:
        FEATURES.append(feature)
        feature.register()
        if feature.section is not None:
            SECTIONS.append(feature.section)
        CONFIG_FIELDS.extend(feature.config_fields)
        if feature.report is not None:
            REPORTS.append(feature.report)
        for each in feature.options:
            _insert(each)
    _index()


def _insert(added: OptionSet) -> None:
    if added.group not in GROUPS:
        titles = list(GROUPS)
        titles.insert(_behind(added.after, titles), added.group)
        groups = {title: GROUPS.get(title, ()) for title in titles}
        GROUPS.clear()
        GROUPS.update(groups)
    options = GROUPS[added.group]
    at = _behind(added.after, [option.name for option in options])
    GROUPS[added.group] = (*options[:at], *added.options, *options[at:])
    for title, others in GROUPS.items():
        GROUPS[title] = tuple(_served(other, added.options) for other in others)


def _served(option: Option, added: Iterable[Option]) -> Option:
    serving = [each.name for each in added if option.name in each.serves]
    return replace(option, needs=(*option.needs, *serving)) if serving else option


def _behind(name: str | None, names: Sequence[str]) -> int:
    if name == "":
        return 0
    return names.index(name) + 1 if name in names else len(names)


def _index() -> None:
    OPTIONS[:] = [option for options in GROUPS.values() for option in options]
    for option in OPTIONS:
        BY_NAME[option.name] = option
        SPELLINGS.update(name for name in (option.flag_name, option.short) if name)
        for name in option.replaces:
            replacing = REPLACED_BY.setdefault(name, [])
            if option.name not in replacing:
                replacing.append(option.name)


_index()
