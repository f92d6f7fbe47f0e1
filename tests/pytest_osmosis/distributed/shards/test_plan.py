"""Which shard has which runs, and what becomes of one that is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.distributed.shards.plan import MAX_LOSSES, ShardPlan
from pytest_osmosis.run_result import RunId


def run(row: int) -> RunId:
    return RunId("data", row, 0)


def plan(rows: int, *, shards: int = 2, window: int = 4) -> ShardPlan:
    made = ShardPlan(shards, window, lambda run: run.row_index % shards)
    for row in range(rows):
        made.assign(run(row))
    return made


@given(st.integers(1, 300), st.integers(1, 20), st.data())
def test_the_windows_of_shards_sum_to_the_batch_size_whichever_have_ended(
    window: int, shards: int, data: st.DataObject
):
    made = plan(shards, shards=shards, window=window)
    for number in data.draw(st.sets(st.integers(0, shards - 1), max_size=shards - 1)):
        made.end(number)
    windows = made.windows()
    assert sum(windows.values()) == window
    assert max(windows.values()) - min(windows.values()) <= 1
    assert list(windows) == [shard.number for shard in made.live()]


def test_a_run_is_expected_until_it_has_ended_or_its_shard_has():
    made = plan(4)
    assert made.expects(run(2)) and made.finish(0, run(2)) and not made.expects(run(2))
    assert not made.finish(0, run(2))
    made.end(1)
    assert not made.expects(run(3)) and made.expects(run(0))


def test_a_shard_whose_machine_died_goes_on_with_what_has_no_result():
    made = plan(8)
    made.shards[0].has_begun = True
    made.finish(0, run(2))
    loss = made.lose(0, suspect=False)
    assert loss.again and loss.culprit is None
    assert [each.row_index for each in made.shards[0].todo] == [0, 4, 6]
    assert made.windows() == {0: 2, 1: 2}


def test_the_run_that_ends_its_process_twice_is_to_blame_and_no_other():
    made = plan(12, window=6)
    shard = made.shards[0]
    shard.has_begun = True
    assert made.lose(0, suspect=True).culprit is None
    assert shard.careful == 3
    shard.has_begun = True
    assert made.finish(0, run(0))
    loss = made.lose(0, suspect=True)
    assert (loss.again, loss.culprit) == (True, run(2))
    assert shard.careful == 1
    assert made.finish(0, run(4))
    assert shard.careful == 0


def test_a_process_that_ends_before_it_has_its_runs_blames_none():
    made = plan(4)
    assert made.lose(0, suspect=True).culprit is None
    assert made.shards[0].careful == 0


def test_a_shard_that_is_lost_again_and_again_is_given_up():
    made = plan(4)
    assert [made.lose(0, suspect=False).again for _ in range(MAX_LOSSES + 1)] == [
        *[True] * MAX_LOSSES,
        False,
    ]


def test_a_shard_that_has_made_all_of_its_runs_is_not_started_again():
    made = plan(2)
    made.finish(0, run(0))
    assert not made.lose(0, suspect=False).again


def test_a_window_of_less_than_the_shards_leaves_some_waiting():
    made = plan(8, shards=4)
    made.resize(1)
    assert made.windows() == {0: 1, 1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("suspect", [True, False])
def test_a_result_in_between_starts_the_count_of_losses_anew(suspect: bool):
    made = plan(40)
    for row in range(0, 20, 2):
        made.shards[0].has_begun = True
        assert made.lose(0, suspect=suspect).again
        made.finish(0, run(row))
