"""`osmosis eval merge`: the reports of an evaluation's shards become the report of the whole.

Everything is computed again from the runs. What does not belong together is refused, by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_osmosis.reports.text_table import columns

from ..errors import CommandDone, CommandError, command_errors
from .lines import say
from .report import read, readable

if TYPE_CHECKING:
    from pytest_osmosis.analysis.score_table import ScoreTable
    from pytest_osmosis.dataset.sampling import Part
    from pytest_osmosis.features.comparison.baseline import Baseline
    from pytest_osmosis.run_result import SuiteInfo
    from pytest_osmosis.suite_results import EvalResult, Section, SuiteResult
    from pytest_osmosis.verdicts import GateResult

EPILOG = """\b
Examples:
  osmosis eval -m server:agent_loop -d test_data.jsonl --model my-model \\
      --shard 1/4 -o shard-1.json  # and 2/4, 3/4, 4/4 elsewhere
  osmosis eval merge shard-*.json -o results.json
"""


@dataclass(frozen=True, slots=True)
class ShardReport:
    """One file, which holds one shard."""

    path: Path
    result: EvalResult
    shard: Part


@click.command("merge", epilog=EPILOG)
@click.argument(
    "reports", nargs=-1, required=True, metavar="SHARD.json...", type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the merged report here.",
)
@click.option(
    "--baseline",
    metavar="REPORT.json",
    type=click.Path(path_type=Path),
    help="Compare the whole with this report, which gates on a difference need.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the merged report, and nothing else, on stdout."
)
@click.pass_context
def merge_command(
    ctx: click.Context,
    /,
    reports: tuple[Path, ...],
    output: Path,
    baseline: Path | None,
    as_json: bool,
) -> None:
    """Join the reports of all shards of an evaluation (--shard I/K).

    Gates are evaluated again, and decide the exit status: 1 one failed, 8 one is inconclusive.
    Without gates it is 1 where a run did not pass.
    """
    from pytest_osmosis.reports import json_writer
    from pytest_osmosis.reports.saved_conversations import beside
    from pytest_osmosis.reports.summary import COLUMNS, summary
    from pytest_osmosis.storage.atomic_write import is_special, write_whole
    from pytest_osmosis.verdicts import exit_status

    said = beside(output)
    taken = {file.resolve() for path in reports for file in (path, beside(path))}
    if not taken.isdisjoint([output.resolve(), said.resolve()]):
        raise click.UsageError(f"-o {output}: this is one of the reports to merge; name another")
    parts = sorted((_part(path) for path in reports), key=lambda part: part.shard.number)
    _check_shards(parts)
    for part in parts[1:]:
        _check_settings(parts[0], part)
    level = _level_of(parts)
    merged = _evaluate(_merge(parts, level), baseline, level)
    if any(suite.verdicts for suite in merged.suites):  # what has no gate was observed
        merged = merged.with_suites(
            lambda suite: suite if suite.verdicts else replace(suite, verdict="passed")
        )
    joins = said.exists() or any(beside(part.path).exists() for part in parts)
    try:
        if joins and not is_special(output):
            write_whole(said, _conversations(parts), mode=0o600)
        json_writer.write(merged, output)
    except OSError as error:
        raise CommandError(f"cannot write {output}: {error.strerror or error}") from None
    status = exit_status([merged.state])
    if as_json:
        click.echo(output.read_text("ascii").rstrip())
        raise CommandDone(status)
    for line in summary(merged, width=columns() or COLUMNS):
        say(line)
    say(f"report: {output}")
    if said.exists():
        say(f"conversations: {said}")
    ctx.exit(status)


def _part(path: Path) -> ShardReport:
    from pytest_osmosis.dataset.sampling import parse_part
    from pytest_osmosis.reports.json_reader import load_report
    from pytest_osmosis.reports.saved_report import with_sections

    with readable():
        result = with_sections(*load_report(path))
    texts = {str(suite.info.settings.get("shard", "")) for suite in result.suites}
    try:
        (text,) = texts
        shard = parse_part(text)
    except ValueError:
        raise CommandError(
            f"{path} is no shard of an evaluation: run it with --shard I/K", code="no_shard"
        ) from None
    return ShardReport(path, result, shard)


def _check_shards(parts: Sequence[ShardReport]) -> None:
    """Refuse parts of other divisions, a shard given twice, a missing one, and missing runs."""
    first = parts[0]
    count = first.shard.count
    for part in parts:
        if part.shard.count != count:
            raise _refusal(
                "mixed_settings",
                f"{first.path} is shard {first.shard} and {part.path} is shard {part.shard}: "
                "they belong to different divisions",
            )
    for one, other in pairwise(parts):
        if one.shard == other.shard:
            raise _refusal(
                "overlap", f"shard {one.shard} is in both {one.path} and {other.path}: give it once"
            )
    missing = sorted({*range(1, count + 1)} - {part.shard.number for part in parts})
    if missing:
        names = ", ".join(f"{number}/{count}" for number in missing[:10])
        raise _refusal("gap", f"missing: shard {names}{' …' if len(missing) > 10 else ''}")
    for part in parts:
        for suite in part.result.with_companions:
            if not suite.complete:
                raise _refusal("gap", _incomplete(part, suite))


def _incomplete(part: ShardReport, suite: SuiteResult) -> str:
    from pytest_osmosis.run_result import DECIDED

    again = "run the same command again"
    if part.result.halted == DECIDED:
        again += " without --stop-when-decided, which looks at the gates of a shard alone,"
        again += " and with --extend"
    return (
        f"{part.path} (shard {part.shard}) has {suite.finished} of {suite.info.total_runs} runs "
        f"of {suite.info.name}: {again} to fill it in"
    )


def _merge(parts: Sequence[ShardReport], confidence: float) -> EvalResult:
    from pytest_osmosis.suite_results import EvalResult

    first = parts[0]
    suites = [
        _join([(part, part.result.suites[number]) for part in parts], confidence)
        for number in range(len(first.result.suites))
    ]
    return EvalResult(
        suites=tuple(suites),
        duration_ms=max(part.result.duration_ms for part in parts),
        halted=next((part.result.halted for part in parts if part.result.halted), None),
        environment=first.result.environment,
    )


def _conversations(parts: Sequence[ShardReport]) -> Iterator[bytes]:
    """Yield the lines of the conversations beside the reports, with the suites of the first."""
    from pytest_osmosis.reports.saved_conversations import beside
    from pytest_osmosis.storage.excerpt import encode

    first = parts[0].result.with_companions
    for part in parts:
        own = part.result.with_companions
        names = {ours.info.name: whole.info.name for ours, whole in zip(own, first, strict=True)}
        path = beside(part.path)
        try:
            opened = path.open("rb")
        except FileNotFoundError:
            continue
        except OSError as error:
            why = error.strerror or error
            raise CommandError(f"{path}: cannot be read: {why}", code="invalid") from None
        with opened as file:
            for number, line in enumerate(file, 1):
                try:
                    document = json.loads(line)
                    document["suite"] = names[document["suite"]]
                except (ValueError, KeyError, TypeError):
                    raise CommandError(
                        f"{path}:{number}: not the line of a conversation", code="invalid"
                    ) from None
                yield encode(document).encode("ascii") + b"\n"


def _check_settings(first: ShardReport, other: ShardReport) -> None:
    ours, theirs = (dict(_settings(part)) for part in (first, other))
    for key in {**ours, **theirs}:
        if ours.get(key) != theirs.get(key):
            raise _refusal(
                "mixed_settings",
                f"{key[1]} is {_render(ours.get(key))} in {first.path} and "
                f"{_render(theirs.get(key))} in {other.path}",
            )
    _warn_of_code(first, other)


def _settings(part: ShardReport) -> Iterator[tuple[tuple[int, str], Any]]:
    """What must be the same everywhere; where the data lie and what serves the model may differ."""
    own, suites = part.result.suites, part.result.with_companions
    yield (0, "the number of evaluations"), len(own)
    yield (0, "the number of baseline models"), len(suites) - len(own)
    for number, suite in enumerate(suites):
        info = suite.info
        yield (number, "the model"), info.model
        yield (number, "the agent"), info.agent
        yield (number, "n"), info.n
        yield (number, "the pass threshold"), info.pass_threshold
        yield (number, "the eval functions' own thresholds"), dict(info.thresholds)
        yield (number, "the list of eval functions"), list(info.eval_fns)
        yield (number, "the digest of the data"), info.digest
        yield from (
            ((number, name), value) for name, value in info.settings.items() if name != "shard"
        )
        yield (number, "the list of gates"), [gate.gate for gate in suite.verdicts]


def _warn_of_code(first: ShardReport, other: ShardReport) -> None:
    git = [part.result.environment.get("git") or {} for part in (first, other)]
    ours, theirs = (str(each.get("commit") or "")[:12] for each in git)
    if ours and theirs and ours != theirs:
        click.echo(
            f"warning: {first.path} was run at commit {ours} and {other.path} at {theirs}: "
            "the code may differ",
            err=True,
        )


def _join(shards: Sequence[tuple[ShardReport, SuiteResult]], confidence: float) -> SuiteResult:
    from pytest_osmosis.analysis.aggregate import aggregate
    from pytest_osmosis.suite_results import Usage

    info = shards[0][1].info
    _check_overlap(shards)
    endpoints = dict.fromkeys(suite.info.endpoint for _, suite in shards)
    whole = replace(
        info,
        rows=sum(suite.info.rows for _, suite in shards),
        endpoint=", ".join(endpoints),
        settings={name: value for name, value in info.settings.items() if name != "shard"},
        clusters=_joined_clusters(suite.info for _, suite in shards),
    )
    runs = [replace(run, suite=info.name) for _, suite in shards for run in suite.runs]
    selected = sum(suite.selected for _, suite in shards)
    joined = aggregate(whole, runs, selected=selected, confidence=confidence)
    digests = {row.row_index: row.digest for _, suite in shards for row in suite.rows}
    baseline_models = [
        (part, suite.companion) for part, suite in shards if suite.companion is not None
    ]
    return replace(
        joined.with_rows(lambda row: replace(row, digest=digests[row.row_index])),
        repeated=sum((suite.repeated for _, suite in shards), Usage()),
        sections=_joined_sections([suite for _, suite in shards], joined),
        companion=_join(baseline_models, confidence) if baseline_models else None,
        verdicts=_asked(suite for _, suite in shards),
    )


def _joined_clusters(infos: Iterable[SuiteInfo]) -> dict[str, list[int]]:
    """Return the clusters of a whole: a part may have some of the rows of one."""
    found: dict[str, list[int]] = {}
    for name, rows in ((name, rows) for info in infos for name, rows in info.clusters.items()):
        found.setdefault(name, []).extend(rows)
    return found


def _joined_sections(suites: Sequence[SuiteResult], whole: SuiteResult) -> dict[str, Section]:
    """Return the sections of features, as far as those of a whole come from its parts."""
    joined = {}
    for name in dict.fromkeys(name for suite in suites for name in suite.sections):
        first, *others = (suite.sections[name] for suite in suites if name in suite.sections)
        joined[name] = first.joined(others, whole)
    return {name: section for name, section in joined.items() if section is not None}


def _check_overlap(shards: Sequence[tuple[ShardReport, SuiteResult]]) -> None:
    seen: dict[int, ShardReport] = {}
    for part, index in [(part, row.row_index) for part, suite in shards for row in suite.rows]:
        if (other := seen.setdefault(index, part)) is not part:
            raise _refusal("overlap", f"row {index} is in both {other.path} and {part.path}")


def _render(value: Any) -> str:
    if value is None:
        return "not given"
    text = (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _refusal(code: str, message: str) -> CommandError:
    return CommandError(f"{message}; nothing was merged", code=code)


# ---- gates and baselines, as a session over all rows evaluates them


def _asked(shards: Iterable[SuiteResult]) -> tuple[GateResult, ...]:
    """Return the gates, the same in every shard, with the confidence that one of these knows."""
    same_gates = zip(*(suite.verdicts for suite in shards), strict=True)
    return tuple(replace(same[0], confidence=_confidence_of(same)) for same in same_gates)


def _confidence_of(gates: Iterable[GateResult]) -> float | None:
    """Return the confidence that gates were given; None: none was given."""
    return next((gate.confidence for gate in gates if gate.confidence is not None), None)


def _level_of(parts: Sequence[ShardReport]) -> float:
    """Return the confidence of the shards' intervals, or that of the gates where none is known."""
    from pytest_osmosis.analysis.aggregate import CONFIDENCE

    suites = [suite for part in parts for suite in part.result.suites]
    known = (suite.confidence for suite in suites if suite.confidence is not None)
    gates = (gate for suite in suites for gate in suite.verdicts)
    return next(known, _confidence_of(gates) or CONFIDENCE)


def _evaluate(merged: EvalResult, path: Path | None, confidence: float) -> EvalResult:
    """Return the whole with what changed, and with a result for each gate."""
    from pytest_osmosis.analysis.gates.evaluate import evaluate_suite
    from pytest_osmosis.analysis.gates.parser import GateError, parse_gate
    from pytest_osmosis.analysis.planned_rows import ran
    from pytest_osmosis.features.comparison.baseline import with_changes

    baselines = _baselines(merged, path)
    suites = []
    for suite in merged.suites:
        pairs, baseline = baselines.get(suite.info.name, (1, None))
        own = suite.verdicts
        level = _confidence_of(own) if own else confidence
        whole = suite
        if own:
            with command_errors(GateError, code="invalid"):
                whole = evaluate_suite(
                    suite,
                    [parse_gate(gate.gate).with_function(gate.eval_fn) for gate in own],
                    ran(suite),
                    references=_references(suite, baseline),
                    lacking="merging needs the baseline: give its report with --baseline",
                    confidence=level,
                )
        if baseline is not None:
            whole = with_changes(whole, ran(suite), baseline, confidence=level, pairs=pairs)
        suites.append(whole)
    return replace(merged, suites=tuple(suites))


def _references(suite: SuiteResult, baseline: Baseline | None) -> dict[str, ScoreTable]:
    """Return what gates need beside a suite, by name."""
    found = {} if baseline is None else {"baseline": baseline.table}
    for section in suite.sections.values():
        found.update(section.references(suite))
    return found


def _baselines(merged: EvalResult, path: Path | None) -> Mapping[str, tuple[int, Baseline | None]]:
    """By suite: in how many pairs, and with what: the report that was given, or a candidate."""
    from pytest_osmosis.features.comparison.baseline import NoCounterpart, baselines_of, pair_of
    from pytest_osmosis.reports.saved_conversations import beside

    if path is None:
        return {suite.info.name: pair_of(suite, merged.suites) for suite in merged.suites}
    infos = [suite.info for suite in merged.suites]
    report = read(path, "--baseline ")
    with command_errors(NoCounterpart, code="nothing_in_common", where=f"--baseline {path}: "):
        said = beside(path).absolute()
        baselines = baselines_of(report, infos, source=str(path), conversations=said)
    return {name: (1, baseline) for name, baseline in baselines.items()}
