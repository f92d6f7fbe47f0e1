"""The benchmark still measures: its quickest cell, and what it makes of numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.bench import Bench
from benchmarks.bridge import bridge
from benchmarks.clocks import clocks, collector, slope, tail
from benchmarks.crossed import calls, messages, values
from benchmarks.figures import figures
from benchmarks.measure import CommandFailed, Cost, Spread, environment, execute
from benchmarks.peers import PEERS, peers
from benchmarks.prompts import prompts
from benchmarks.rounds import Observation, Series, interleaved
from benchmarks.table import Line, as_markdown, as_text


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench.opened(tmp_path, repeats=1, quick=True) as bench:
        yield bench


@pytest.mark.slow
def test_the_endpoint_s_ceiling_is_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "performance.md"
    assert main(["--quick", "ceiling", "--write", str(page)]) == 0
    assert "requests/s" in capsys.readouterr().out
    assert "| endpoint's ceiling | 0 ms, B 64, N 500 |" in page.read_text()


@pytest.mark.slow
def test_an_evaluation_sends_what_the_bare_loop_sends(bench: Bench):
    ours = bench.ours(0.0, n=3, in_flight=2)()
    bare = bench.bare(0.0, n=3, in_flight=2)()
    assert ours.counts["requests"] == bare.counts["requests"] == 3
    assert 0 < ours.first_s <= ours.cost.wall_s
    assert ours.cost.cpu_s > 0 and ours.cost.rss_mb > 1


@pytest.mark.slow
def test_processor_time_is_counted_by_thread(bench: Bench):
    lines = clocks(bench)
    assert [line.result.split()[1] for line in lines] == ["s", "s", "ms", "ms", "s"]
    assert all(float(line.result.split()[0]) > 0 for line in lines[:4])


@pytest.mark.slow
def test_what_a_session_tells_from_the_inside_is_measured(bench: Bench):
    found = {line.subject: line.result for line in collector(bench)}
    assert {name.partition(", ")[2] for name in found} == {"start", "loop", "end"}
    assert all(int(result.split()[0]) < int(result.split()[2]) for result in found.values())
    assert all(float(line.result.split()[0]) > 0 for line in (*tail(bench), *slope(bench)))


@pytest.mark.slow
def test_what_a_rollout_crosses_is_counted(bench: Bench):
    [crossed] = calls(bench)
    [classes, *each] = values(bench)
    [whole, up, _] = messages(bench)
    assert crossed.result.split()[1] == "functions"
    assert len(each) == int(classes.result)
    assert "pytest_osmosis.run_result.RunResult" in {line.subject for line in each}
    assert float(up.result.split()[0]) > 0 and whole.cpu


@pytest.mark.slow
def test_a_call_over_the_bridge_is_measured_against_one_of_ctx_chat(bench: Bench):
    chat, bridged, unbridged, *medians = bridge(bench)
    assert [float(line.cpu) > 0 for line in (chat, bridged, unbridged)] == [True] * 3
    assert "x that of ctx.chat" in bridged.result and "ctx.chat" not in chat.result
    assert [float(line.result.split()[0]) > 100 for line in medians] == [True] * 3


@pytest.mark.slow
def test_a_prompt_template_is_measured_against_the_bare_sandbox(bench: Bench):
    [line] = prompts(bench)
    assert line.setting == "2,000 rows" and float(line.result.split()[0]) > 0


@pytest.mark.slow
def test_figures_are_measured_against_reading_their_runs(bench: Bench):
    reading, ours = figures(bench)
    assert reading.setting == "2,000 rows x 5 runs, 3 eval functions"
    assert float(reading.result.split()[0]) > 0 and float(ours.result.split()[0]) > 0


def test_a_command_that_fails_is_no_measurement(tmp_path: Path):
    command = [sys.executable, "-c", "print('too bad'); raise SystemExit(3)"]
    with pytest.raises(CommandFailed, match=r"ended with 3:\ntoo bad"):
        execute(command, cwd=tmp_path, env=environment(tmp_path))


def test_contenders_take_turns_and_the_first_round_does_not_count():
    order: list[str] = []

    def contender(name: str, wall_s: float) -> Observation:
        order.append(name)
        return Observation(Cost(wall_s, 0.5, 10.0, 0.0), {"max_in_flight": 4})

    found = interleaved(
        {"a": lambda: contender("a", 1.0), "b": lambda: contender("b", 2.0)}, repeats=2
    )
    assert order == ["a", "b"] * 3
    assert found["a"].faster_than(found["b"]).values == (2.0, 2.0)
    assert found["a"].cpu_ms(100).median == 5.0


def test_a_spread_shows_its_range_when_there_is_one():
    assert Spread.of([3.0, 1.0, 2.0]).show() == "2.00 (1.00–3.00)"
    assert Spread.of([1.234]).show(1) == "1.2"
    assert Series(()).wall_s.values == ()


def test_a_peer_that_is_not_installed_is_skipped_and_said(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_BENCH_PEERS", str(tmp_path / "none"))
    lines = peers(bench)
    assert [line.subject for line in lines] == list(PEERS)
    assert all("skipped" in line.result for line in lines)


def test_lines_become_columns_and_a_page():
    lines = [Line("throughput", "B 1", "ours", "0.50"), Line("", "", "bare")]
    assert as_text(lines).splitlines()[1].split() == ["throughput", "B", "1", "ours", "0.50"]
    page = as_markdown(lines, notes=["a machine"], command="tox -e bench")
    assert "- a machine" in page and "| throughput | B 1 | ours | 0.50 |" in page
