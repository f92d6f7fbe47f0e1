"""Stopping and slowing down: what results make of the rest of a session."""

from __future__ import annotations

import pytest

from pytest_osmosis.run_result import RunResult
from pytest_osmosis.session.supervisor import AdaptiveConcurrency, Supervisor


class Runs:
    """What a supervisor does to the runs of a session."""

    def __init__(self, *, selected: int = 100) -> None:
        self.reasons: list[str] = []
        self.windows: list[int] = []
        self.supervisor = Supervisor(
            batch_size=16,
            selected=lambda: selected,
            halt=self.reasons.append,
            resize=self.windows.append,
        )


def run(index: int, **fields: object) -> RunResult:
    return RunResult("suite", index, 0, **fields)  # type: ignore[arg-type]


UNREACHABLE = {"error_type": "provider", "error_kind": "unreachable", "error": "cannot reach x:1"}


def test_a_fatal_error_ends_the_session_with_its_own_sentence_once():
    runs = Runs()
    runs.supervisor.ended(run(0, error="401 from x", error_type="provider", fatal=True))
    runs.supervisor.ended(run(1, error="401 from x", error_type="provider", fatal=True))
    assert runs.reasons == ["401 from x"]


@pytest.mark.fault(
    "nothing scores: `--eval-fn` was forgotten, a judge has no key, `get_tools` gives no tools"
)
@pytest.mark.parametrize("kind", ["no_reward", "wrong_tools"])
def test_a_rollout_that_nothing_scores_ends_a_session_in_which_none_was_scored(kind: str):
    unscored = {"error_type": "eval_fn", "error_kind": kind, "error": "nothing scores it"}
    first, later, resumed = Runs(), Runs(), Runs()
    first.supervisor.ended(run(0, **unscored))
    later.supervisor.ended(run(0, scores={"reward": 0.0}))
    later.supervisor.ended(run(1, **unscored))
    resumed.supervisor.ended(run(0, **unscored), others_scored=True)
    assert (first.reasons, later.reasons, resumed.reasons) == (["nothing scores it"], [], [])
    later.supervisor.ended(run(2, error_type="eval_fn", error_kind="no_judge", error="no key"))
    assert later.reasons == ["no key"]


def test_three_first_runs_that_cannot_reach_the_endpoint_end_the_session():
    runs = Runs()
    for index in range(2):
        runs.supervisor.ended(run(index, **UNREACHABLE))
    assert runs.reasons == []
    runs.supervisor.ended(run(2, **UNREACHABLE))
    assert runs.reasons == ["cannot reach x:1"]


def test_a_session_of_two_runs_that_cannot_reach_the_endpoint_ends_by_it_too():
    runs, broken = Runs(selected=2), Runs(selected=1)
    runs.supervisor.ended(run(0, **UNREACHABLE))
    assert runs.reasons == []
    runs.supervisor.ended(run(1, **UNREACHABLE))
    assert runs.reasons == ["cannot reach x:1"]
    broken.supervisor.ended(run(0, **{**UNREACHABLE, "error_kind": "connection"}))
    assert broken.reasons == []


@pytest.mark.parametrize(
    "answered", [{"success": True, "llm_calls": 1}, {"error": "400", "error_type": "provider"}]
)
def test_an_endpoint_that_was_reached_may_be_away_for_four_runs_in_a_row(
    answered: dict[str, object],
):
    runs = Runs()
    for _ in range(3):
        runs.supervisor.ended(run(0, **answered))
        for index in range(1, 5):
            runs.supervisor.ended(run(index, **UNREACHABLE))
    assert runs.reasons == []
    runs.supervisor.ended(run(5, **UNREACHABLE))
    assert runs.reasons == ["the endpoint went away: cannot reach x:1"]


def test_a_connection_that_breaks_ends_the_session_only_where_there_was_never_a_reply():
    broken = {**UNREACHABLE, "error_kind": "connection", "error": "no answer from x:1"}
    never, later, within = Runs(), Runs(), Runs()
    for index in range(3):
        never.supervisor.ended(run(index, **broken))
    assert never.reasons == ["no answer from x:1"]
    later.supervisor.ended(run(0, success=True, llm_calls=1))
    for index in range(1, 10):
        later.supervisor.ended(run(index, **broken))
        within.supervisor.ended(run(index, **broken, llm_calls=1))
    assert later.reasons == within.reasons == []


def test_the_refusals_of_one_burst_halve_the_window_once():
    runs = Runs()
    for _ in range(16):
        runs.supervisor.pressed()
    assert runs.windows == [8]


def test_the_window_grows_by_one_for_every_window_of_answers_and_never_above_the_batch_size():
    windows: list[int] = []
    pace = AdaptiveConcurrency(4, windows.append)
    pace.decrease()
    for _ in range(100):
        pace.increase()
    assert windows == [2, 3, 4]


def test_the_window_never_falls_below_one():
    windows: list[int] = []
    pace = AdaptiveConcurrency(4, windows.append)
    for _ in range(8):
        pace.decrease()
        for _ in range(4):
            pace.increase()
    assert min(windows) == 1


@pytest.mark.parametrize("most", [1, 2, 7, 64])
def test_an_endpoint_that_bears_everything_never_changes_the_window(most: int):
    windows: list[int] = []
    pace = AdaptiveConcurrency(most, windows.append)
    for _ in range(1000):
        pace.increase()
    assert windows == []
