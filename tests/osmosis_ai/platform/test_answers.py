"""What a platform says of runs: whatever is absent or odd is unknown."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from osmosis_ai.platform.answers import (
    RunRecord,
    moment_of,
    run_record,
)

ODD: tuple[Any, ...] = (None, 5, True, "", [], {}, [1], [{}], float("nan"))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_is_of_another_type_is_unknown(odd: Any):
    names = ("id", "status", "created_at", "model", "dataset", "config", "results", "env_config")
    assert run_record(dict.fromkeys(names, odd), "eval_run") == RunRecord()


def test_a_run_is_read_from_a_list_and_from_a_detail_alike():
    head = {"id": "1", "name": "otter", "status": "running"}
    names = {"dataset": {"name": "d"}, "rollout": {"name": "r"}, "model": {"name": "m"}}
    listed = run_record({**head, **names}, "eval_run")
    assert listed == run_record({"eval_run": head, **names}, "eval_run")
    assert (listed.name, listed.dataset, listed.rollout, listed.model) == ("otter", "d", "r", "m")


def test_what_a_detail_leaves_out_is_taken_from_its_config():
    experiment = {"rollout": "r", "entrypoint": "e", "model_path": "m", "dataset": "d"}
    found = run_record({"eval_run": {}, "config": {"experiment_config": experiment}}, "eval_run")
    assert (found.rollout, found.entrypoint, found.model, found.dataset) == ("r", "e", "m", "d")


@pytest.mark.parametrize(
    ("status", "completed_at", "has_ended"),
    [("running", None, False), ("queued", None, False), (None, None, False), ("odd", None, False),
     ("finished", None, True), ("crashed", None, True), ("odd", "2026-01-01", True)],
)  # fmt: skip
def test_a_run_has_ended_by_its_status_or_by_its_time(
    status: str | None, completed_at: str | None, has_ended: bool
):
    assert RunRecord(status=status, completed_at=completed_at).has_ended is has_ended


@pytest.mark.parametrize("fraction", ["", ".5", ".500", ".500000", ".500000999"])
@pytest.mark.parametrize("zone", ["Z", "+00:00", ""])
def test_a_time_is_read_with_any_fraction_and_in_utc_without_a_zone(fraction: str, zone: str):
    micro = 500_000 if fraction else 0
    expected = datetime(2026, 11, 22, 10, 0, 0, micro, timezone.utc)
    assert moment_of(f"2026-11-22T10:00:00{fraction}{zone}") == expected


@pytest.mark.parametrize("text", [None, "", "now", "2026-13-01", "."])
def test_what_is_no_time_is_unknown(text: str | None):
    assert moment_of(text) is None
