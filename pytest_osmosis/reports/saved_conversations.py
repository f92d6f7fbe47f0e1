"""The conversations beside a saved report: read when they are asked for, one at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osmosis_ai.messages import text_of

from ..dataset.rows import truth_text
from ..rollouts.failure_text import explanation
from ..run_result import RolloutRecord, RunId
from ..suite_results import EvalResult, RowData, RowResult
from .formats import Sections
from .json_reader import UnreadableReport


def beside(report: Path) -> Path:
    """Return where the conversations of a JSON report are."""
    return report.with_name(f"{report.stem}.trajectories.jsonl")


def asked_in(messages: Sequence[Mapping[str, Any]], ground_truth: Any) -> RowData:
    """Return what a conversation says of its row: what the user asked first, and the truth."""
    asked = (text_of(each.get("content")) for each in messages if each.get("role") == "user")
    truth = None if ground_truth is None else truth_text(ground_truth)
    return RowData(next(asked, ""), truth, {})


class SavedConversations:
    """A `.trajectories.jsonl`: where each run is, and what was asked in each row."""

    def __init__(self, path: Path, result: EvalResult) -> None:
        """Look through the file, if it is there; UnreadableReport when it is damaged."""
        self.path = path
        self._runs = {run.run_id: run for run in result.runs}
        self._alone = result.suites[0].info.name if len(result.suites) == 1 else None
        others = (suite.companion for suite in result.suites)
        self._not_shown = {other.info.name for other in others if other is not None}
        self._places: dict[RunId, tuple[int, int]] = {}
        self._asked: dict[tuple[str, int], RowData] = {}
        try:
            self._scan()
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnreadableReport(f"{path}: cannot be read: {error.strerror or error}") from None

    def _scan(self) -> None:
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    self._note(json.loads(line), offset, len(line))
                except (ValueError, KeyError, TypeError, AttributeError):
                    raise UnreadableReport(
                        f"{self.path}:{number}: not the line of a conversation"
                    ) from None
                offset += len(line)

    def _note(self, line: Mapping[str, Any], offset: int, length: int) -> None:
        if line.get("suite") in self._not_shown:  # an accompanying suite's
            return
        run = RunId(self._alone or line["suite"], line["row_index"], line["run_index"])
        self._places[run] = offset, length
        key = run.suite, run.row_index
        if key not in self._asked:
            self._asked[key] = asked_in(line["messages"], line.get("ground_truth"))

    def __contains__(self, run: object) -> bool:
        return run in self._places

    def __call__(self, run: RunId) -> RolloutRecord | None:
        """Return what was said in a run; None where that was not kept."""
        place, result = self._places.get(run), self._runs.get(run)
        if place is None or result is None:
            return None
        with self.path.open("rb") as file:
            line = json.loads(os.pread(file.fileno(), place[1], place[0]))
        return RolloutRecord(
            result,
            line.get("frames", ""),
            line["messages"],
            line.get("ground_truth"),
            calls=line.get("calls", ()),
            reasons=line.get("reasons", {}),
        )

    def row_data(self, suite: str, row: RowResult) -> RowData | None:
        """Return what a row asked, as far as a conversation of it is there."""
        return self._asked.get((suite, row.row_index), row.data)


def saved_sections(result: EvalResult, said: SavedConversations) -> Sections:
    """Return what gives the sections of runs that did not pass, as far as they are known."""
    suites = {suite.info.name: suite.info for suite in result.suites}

    def section(key: RunId) -> str | None:
        record = said(key)
        if record is None or record.result.passed:
            return None
        run, info = record.result, suites[key.suite]
        return explanation(
            record,
            threshold=info.pass_threshold,
            max_turns=info.settings.get("max_turns") or run.llm_calls + 1,
            whole=said.path,
        )

    return section
