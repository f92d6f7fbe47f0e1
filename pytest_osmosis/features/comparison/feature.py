"""What the suites of a session are compared with, and what has changed.

That is an earlier report, each suite's last evaluation that was kept, another model's runs in the
same session, or the first of several candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...analysis.planned_rows import PlannedRows, row_key
from ...errors import ConfigurationError
from ...escaping import shown_path
from ...options.reader import OptionReader
from ...run_result import SuiteInfo
from ...session.seams import Feature
from ...storage.fingerprint import RunPlan
from ...storage.journal import FILE
from ...storage.kept_result import kept_suite
from ...storage.replay import JournalError, Replay, replay
from ...storage.resume import is_complete

if TYPE_CHECKING:
    import pytest

    from ...analysis.score_table import ScoreTable
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult
    from . import Asked
    from .baseline import Baseline


class ComparisonFeature(Feature):
    """Finds what suites are compared with, has gates subtract it, and says what has changed."""

    def __init__(self, config: pytest.Config, asked: Asked) -> None:
        self._config = config
        self._asked = asked
        self._confidence: float | None = None
        self._answers = True
        self._rows_of: Callable[[SuiteInfo], PlannedRows]
        self._known: dict[str, Baseline] = {}
        """By suite: what it is compared with, as far as that is known before anything runs."""

    # ---- before anything runs

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Return the session with an evaluation for each candidate, and for the baseline model."""
        from .candidates import planned

        self._confidence = spec.deciding.confidence
        self._answers = spec.answers
        return planned(spec, OptionReader(self._config), self._asked.model)

    def known(
        self,
        suites: Sequence[SuiteInfo],
        folder_of: Callable[[SuiteInfo], Path],
        rows_of: Callable[[SuiteInfo], PlannedRows],
    ) -> Iterator[str]:
        """Find what these suites are compared with; yield lines to show."""
        self._rows_of = rows_of
        if self._asked.report is not None:
            self._read(self._asked.report, suites)
        elif self._asked.last:
            yield from self._find_last(suites, folder_of)

    def _read(self, path: Path, infos: Sequence[SuiteInfo]) -> None:
        from ...reports.json_reader import UnreadableReport, read_result
        from ...reports.saved_conversations import beside
        from .baseline import NoCounterpart, baselines_of

        source = shown_path(path)
        try:
            report = read_result(path, figures=False)
            said = beside(path).absolute() if self._answers else None
            self._known |= baselines_of(report, infos, source=source, conversations=said)
        except UnreadableReport as error:
            raise ConfigurationError(f"--osmosis-baseline {error}") from None
        except NoCounterpart as error:
            raise ConfigurationError(
                f"--osmosis-baseline {source}: {error}; name a report of the same evaluation"
            ) from None

    def _find_last(
        self, infos: Iterable[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        for info in infos:
            last = _last_complete(info, folder_of(info))
            if last is None:
                yield f"osmosis: no earlier complete evaluation of {info.name} to compare with"
            else:
                self._known[info.name] = last
                yield f"osmosis: {info.name} is compared with {last.source}"

    # ---- gates

    def references(self, info: SuiteInfo) -> Mapping[str, int | None]:
        """Return what a gate may subtract from a suite, with its runs a row, if known."""
        if not (self._asked.has_baseline or info.leader):
            return {}
        known = self._known.get(info.name)
        return {"baseline": None if known is None else known.suite.info.n}

    def tables(self, suite: SuiteResult, every: Iterable[SuiteResult]) -> Mapping[str, ScoreTable]:
        """Return what there is to subtract from a suite that has ended, by name."""
        baseline = self._pair(suite, every)[1]
        return {} if baseline is None else {"baseline": baseline.table}

    # ---- the end

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with what changed; baseline models' suites become parts of others."""
        others = {suite.info.companion_of: suite for suite in result.suites}
        own = (suite for suite in result.suites if suite.info.companion_of is None)
        return replace(
            result,
            suites=tuple(
                replace(
                    self._compared(suite, result.suites),
                    companion=others.get(suite.info.name),
                )
                for suite in own
            ),
        )

    def _compared(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> SuiteResult:
        pairs, baseline = self._pair(suite, every)
        if baseline is None:
            return suite
        from .baseline import with_changes, without_answers

        rows = self._rows_of(suite.info)
        baseline = baseline if self._answers else without_answers(baseline)
        return with_changes(suite, rows, baseline, confidence=self._confidence, pairs=pairs)

    def _pair(
        self, suite: SuiteResult, every: Iterable[SuiteResult]
    ) -> tuple[int, Baseline | None]:
        if (known := self._known.get(suite.info.name)) is not None:
            return 1, known
        if not suite.info.label or suite.info.companion_of:
            return 1, None
        from .baseline import pair_of

        return pair_of(suite, every, self._rows_of)


# ---- a suite's previous complete evaluation, among those that are kept


def _last_complete(info: SuiteInfo, folder: Path) -> Baseline | None:
    """Return a suite's previous complete evaluation, or None; what cannot be read is passed over.

    The one in the suite's own folder if it is complete, else the newest one that was put aside.
    """
    own = _subject(info)
    for each in _newest_first(folder):
        try:
            kept = replay(each)
            if is_complete(kept) and _subject(SuiteInfo.from_dict(kept.header["info"])) == own:
                return _baseline(kept)
        except (JournalError, OSError, KeyError, TypeError):
            continue
    return None


def _subject(info: SuiteInfo) -> tuple[str, str, str]:
    """What an evaluation is of, wherever its data lie; a folder's name may stand for several."""
    return info.agent, info.model, Path(info.data).name


def _newest_first(folder: Path) -> Iterator[Path]:
    """The suite's folder, then those that were put aside; their names end with their time."""
    if (folder / FILE).is_file():
        yield folder
    aside = folder.parent.glob(f"{folder.name}@*/{FILE}")
    yield from sorted((path.parent for path in aside), reverse=True)


def _baseline(kept: Replay) -> Baseline:
    from ...storage.run_lines import read_record
    from .baseline import baseline_of
    from .earlier_runs import Tools, calls

    def tools_of(rows: Collection[int]) -> Tools:
        places = {key: run.place for key, run in kept.runs.items() if key[0] in rows}
        records = {key: read_record(place) for key, place in places.items()}
        return {key: calls(record.messages) for key, record in records.items() if record}

    plan, suite = RunPlan.from_json(kept.plan), kept_suite(kept, figures=False)
    begun = time.strftime("%Y-%m-%d %H:%M", time.gmtime(kept.header["created_at"]))
    source = f"{suite.info.model} of {begun} UTC"
    return baseline_of(suite, source, _rows(plan, suite), tools_of=tools_of)


def _rows(plan: RunPlan, suite: SuiteResult) -> PlannedRows:
    ids = {row.row_index: row.row_id for row in suite.rows}
    return PlannedRows(
        indices=plan.indices,
        names=list(plan.row_of_name),
        keys=[row_key(index, ids.get(index)) for index in plan.indices],
        digests=list(plan.digest_of.values()),
    )
