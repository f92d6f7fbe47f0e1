"""From results to columns of numbers, with the rows that were planned and never ran among them.

Whose fault a missing score is decides what it counts for: an agent that raised or ran out of time
has scored 0.0; what the endpoint, a judge or a lost worker is to blame for is unknown. Knows no
gates and no reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .score_table import ScoreTable, ScoreTableBuilder, match_column, reads_as

if TYPE_CHECKING:
    from ..dataset.dataset import Dataset
    from ..run_result import RunResult, SuiteInfo
    from ..suite_results import SuiteResult

AGENTS_OWN = ("agent", "timeout")
"""Error types that the agent itself is to blame for."""


@dataclass(frozen=True)
class PlannedRows:
    """The rows of an evaluation, whether they have run or not."""

    indices: Sequence[int]
    """Position in the data file of each."""
    names: Sequence[str]
    keys: Sequence[str]
    """What identifies each in another session: its id, else its index."""
    digests: Sequence[str]
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Every column's name; values only of those that were asked for."""

    def places(self, indices: Iterable[int]) -> list[int]:
        """Return where the rows of these indices stand, in their order here."""
        wanted = set(indices)
        return [place for place, index in enumerate(self.indices) if index in wanted]

    def where(self, column: str, value: str) -> tuple[int, ...]:
        """Return the indices of the rows whose column reads as the value."""
        values = self.columns[match_column(self.columns, column)]
        return tuple(
            index for index, each in zip(self.indices, values, strict=True) if reads_as(each, value)
        )

    def digest_of(self) -> Mapping[int, str]:
        """Digest by row index."""
        return dict(zip(self.indices, self.digests, strict=True))


def planned(dataset: Dataset, columns: Iterable[str] = ()) -> PlannedRows:
    """The rows of a dataset; the values of `columns` (in any case) are read, row by row."""
    indices = list(dataset.row_indices)
    wanted = list(columns)
    return PlannedRows(
        indices=indices,
        names=[dataset.row_name(index) for index in indices],
        keys=[row_key(index, dataset.row_id(index)) for index in indices],
        digests=[dataset.row_digest(index) for index in indices],
        columns=_columns(dataset, wanted) if wanted else {},
    )


def row_key(row_index: int, row_id: str | None) -> str:
    """What identifies a row: its id, else its index in a form that no id has."""
    return f"#{row_index}" if row_id is None else f"id {row_id}"


def score_table_of(
    suite: SuiteResult, rows: PlannedRows | None = None, eval_fns: Iterable[str] = ()
) -> ScoreTable:
    """A suite's runs; without `rows`, only rows with a run are known.

    `eval_fns` are functions besides those that have given a score.
    """
    names = tuple(dict.fromkeys([*(each.name for each in suite.functions), *eval_fns]))
    thresholds = recorded_scores(suite, names)
    builder, places = empty_score_table(suite.info, rows or ran(suite), names, thresholds)
    for row in suite.rows:
        if (place := places.get(row.row_index)) is not None:
            for run in row.runs:
                if run.run_index < suite.info.n:
                    builder.add(place, run.run_index, **measured(run, names, thresholds))
    return builder.table()


def recorded_scores(suite: SuiteResult, names: Iterable[str]) -> Mapping[str, float | None]:
    """Return the threshold, if there is one, of each name that is no eval function of the suite."""
    own: dict[str, float] = {}
    for run in suite.runs:
        own |= run.thresholds
    return {name: own.get(name) for name in names if name not in suite.info.eval_fns}


def empty_score_table(
    info: SuiteInfo,
    rows: PlannedRows,
    eval_fns: Sequence[str] | None = None,
    thresholds: Mapping[str, float | None] | None = None,
) -> tuple[ScoreTableBuilder, Mapping[int, int]]:
    """A table of which nothing has run yet, and the place in it of each row index."""
    builder = ScoreTableBuilder(
        n=info.n,
        pass_threshold=info.pass_threshold,
        eval_fns=info.eval_fns if eval_fns is None else eval_fns,
        row_names=rows.names,
        thresholds=thresholds,
        columns=rows.columns,
        row_keys=rows.keys,
        row_digests=rows.digests,
    )
    return builder, {index: place for place, index in enumerate(rows.indices)}


def measured(
    run: RunResult, eval_fns: Iterable[str], recorded: Collection[str] = ()
) -> dict[str, Any]:
    """A run that has ended, as `ScoreTableBuilder.add` takes it."""
    scores: Mapping[str, float | None] = run.scores
    agent_failed = run.error_type in AGENTS_OWN
    if agent_failed:
        scores = {name: run.scores.get(name, 0.0) for name in eval_fns if name not in recorded}
    elif not run.success:  # its test was not called, and could have recorded anything
        scores = {**dict.fromkeys(recorded), **scores}
    return {
        "scores": scores,
        "error": run.error_type is not None,
        "agent_failed": agent_failed,
        "duration_s": run.duration_ms / 1000.0 or None,
        "tokens": run.tokens,
        "cost_usd": run.spent_usd,
    }


def with_digests(suite: SuiteResult, rows: PlannedRows) -> SuiteResult:
    """The suite, each row with the digest of its content."""
    digests = rows.digest_of()
    return replace(
        suite,
        rows=tuple(replace(row, digest=digests.get(row.row_index, "")) for row in suite.rows),
    )


def with_columns(rows: PlannedRows, wanted: Iterable[str]) -> PlannedRows:
    """The rows, each wanted column that none of them has being null in all."""
    absent = [name for name in wanted if not _is_among(name, rows.columns)]
    nulls = {name: [None] * len(rows.indices) for name in absent}
    return replace(rows, columns={**rows.columns, **nulls})


def ran(suite: SuiteResult) -> PlannedRows:
    """The rows of which a run has ended: all that a report holds."""
    return PlannedRows(
        indices=[row.row_index for row in suite.rows],
        names=[row.row_id or f"row-{row.row_index}" for row in suite.rows],
        keys=[row_key(row.row_index, row.row_id) for row in suite.rows],
        digests=[row.digest for row in suite.rows],
    )


def _columns(dataset: Dataset, wanted: Sequence[str]) -> dict[str, Sequence[object]]:
    """Values of the wanted columns; null where a row has none. Of the others, the names."""
    rows = [dataset.row(row_index).metadata() for row_index in dataset.row_indices]
    names = dict.fromkeys(name for row in rows for name in row)
    read = {match_column(names, name) for name in wanted if _is_among(name, names)}
    return {name: [row.get(name) for row in rows] if name in read else () for name in names}


def _is_among(name: str, names: Iterable[str]) -> bool:
    return any(name.casefold() == other.casefold() for other in names)
