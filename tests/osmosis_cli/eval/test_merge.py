"""`osmosis eval merge`: shards of an evaluation joined again, or refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from osmosis_cli.main import cli
from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.features.breakdown.results import Breakdowns, breakdown_of
from pytest_osmosis.reports import json_writer as report
from pytest_osmosis.reports.json_reader import read_result
from pytest_osmosis.reports.saved_report import read_saved
from pytest_osmosis.run_result import DECIDED
from pytest_osmosis.suite_results import SuiteResult, Usage
from tests.support.made_results import result_of, suite_of

RUNS = suite_of([[1.0, 1.0], [0.5, 1.0], [0.0, 0.0], ["503", 1.0], [1.0, 0.0]])
WHOLE = aggregate(RUNS.info, RUNS.runs, selected=RUNS.selected, confidence=0.9)


def shard(number: int, count: int, suite: SuiteResult = WHOLE, **changed: Any) -> SuiteResult:
    """Every count-th row, as a session with `--osmosis-shard` reports it."""
    rows = suite.rows[number - 1 :: count]
    settings = {**suite.info.settings, "shard": f"{number}/{count}", **changed.pop("settings", {})}
    info = replace(suite.info, rows=len(rows), settings=settings, **changed)
    runs = [run for row in rows for run in row.runs]
    return aggregate(info, runs, selected=info.total_runs, confidence=0.9)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports are written and named in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *suites: SuiteResult, environment: dict[str, Any] | None = None) -> str:
    report.write(result_of(*suites, environment=environment), Path(name))
    return name


def shards(count: int) -> list[str]:
    return [write(f"s{i}.json", shard(i, count)) for i in range(1, count + 1)]


def merge(*names: str) -> Result:
    return CliRunner().invoke(cli, ["eval", "merge", *names, "-o", "whole.json"])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_merged_shards_are_the_whole(count: int):
    done = merge(*reversed(shards(count)))
    assert done.exit_code == 1, "a run did not pass, and no gate decides"
    assert json.loads(Path("whole.json").read_text())["summary"]["verdict"] == "failed"
    write("expected.json", WHOLE)
    [merged] = read_result(Path("whole.json")).suites
    [expected] = read_result(Path("expected.json")).suites
    assert merged == expected
    assert "report: whole.json" in done.output
    assert "shard" not in Path("whole.json").read_text()


def test_what_was_used_before_runs_were_repeated_is_that_of_all_shards():
    used = [Usage(1, 10, 0, 0.25, 0), Usage(), Usage(2, None, 2, None, 2)]
    for number, before in enumerate(used, 1):
        write(f"s{number}.json", replace(shard(number, 3), repeated=before))
    merge("s1.json", "s2.json", "s3.json")
    [merged] = read_result(Path("whole.json")).suites
    assert merged.repeated == Usage(3, 10, 2, 0.25, 2)


def test_conversations_are_joined_and_none_of_another_report_stays():
    def say(name: str, suite: str, row: int, text: str) -> None:
        line = {"suite": suite, "row_index": row, "run_index": 0, "messages": [{"content": text}]}
        Path(f"{name}.trajectories.jsonl").write_text(json.dumps(line) + "\n")

    names = [write("s1.json", shard(1, 3)), write("s2.json", shard(2, 3, name="sub/data.jsonl"))]
    names.append(write("s3.json", shard(3, 3)))
    say("s1", WHOLE.info.name, 0, "first")
    say("s2", "sub/data.jsonl", 1, "second")
    say("whole", WHOLE.info.name, 2, "of another report")
    done = merge(*names)
    assert "conversations: whole.trajectories.jsonl" in done.output
    lines = Path("whole.trajectories.jsonl").read_text().splitlines()
    found = [(each["suite"], each["messages"][0]["content"]) for each in map(json.loads, lines)]
    assert found == [(WHOLE.info.name, "first"), (WHOLE.info.name, "second")]
    Path("s2.trajectories.jsonl").write_text('{"torn')
    done = merge(*names)
    assert done.exit_code == 1
    assert "s2.trajectories.jsonl:1: not the line of a conversation" in done.output
    Path("s2.trajectories.jsonl").unlink()
    Path("s2.trajectories.jsonl").mkdir()
    done = merge(*names)
    assert "s2.trajectories.jsonl: cannot be read: Is a directory" in done.output


def test_figures_by_a_column_are_those_of_the_rows_of_all_shards():
    def by_level(suite: SuiteResult) -> SuiteResult:
        levels = {0: ["a"], 1: ["b"], 2: ["a"], 3: ["b"]}
        rows_of = {
            name: [row.row_index for row in suite.rows if name in levels.get(row.row_index, ["a"])]
            for name in ("a", "b")
        }
        column = breakdown_of(suite, "level", rows_of, confidence=0.9)
        return replace(suite, sections={"by": Breakdowns((column,))})

    merge(*(write(f"s{i}.json", by_level(shard(i, 2))) for i in (1, 2)))
    [merged] = read_saved(Path("whole.json")).result.suites
    assert merged.sections == by_level(merged).sections


def test_it_has_the_environment_and_the_longest_time():
    environment = {
        "versions": {"python": "3"}, "platform": "p", "command_line": "pytest",
        "git": {"commit": "a" * 40, "branch": "x", "dirty": False},
    }  # fmt: skip
    other = {**environment, "git": {"commit": "b" * 40, "dirty": False}}
    names = [
        write("s1.json", shard(1, 2), environment=environment),
        write("s2.json", shard(2, 2), environment=other),
    ]
    done = merge(*names)
    assert "warning: s1.json was run at commit aaaaaaaaaaaa and s2.json at bbbbbbbbbbbb" in (
        done.output
    )
    merged = json.loads(Path("whole.json").read_text())
    assert merged["environment"] == environment
    assert merged["summary"]["total_duration_ms"] == 31_200


@pytest.mark.parametrize(
    ("gate", "status"), [("mean >= 0.5", 0), ("mean >= 0.9", 1), ("mean >= 0.6", 8)]
)
def test_gates_are_judged_anew_over_the_whole(gate: str, status: int):
    for i in (1, 2):
        suite = shard(i, 2)
        verdict = evaluate(parse_gate(gate), score_table_of(suite))
        write(f"s{i}.json", replace(suite, verdicts=(verdict,)))
    done = merge("s1.json", "s2.json")
    assert done.exit_code == status, done.output
    [only] = json.loads(Path("whole.json").read_text())["gates"]
    assert only["outcome"] == {0: "passed", 1: "failed", 8: "inconclusive"}[status]


REFUSED = {
    "missing": "missing: shard 2/3",
    "twice": "shard 1/2 is in both s1.json and again.json",
    "divisions": "they belong to different divisions",
    "no shard": "all.json is no shard of an evaluation: run it with --shard I/K",
    "incomplete": "s2.json (shard 2/2) has 1 of 2 runs of ",
    "model": "the model is calc-7b in s1.json and other in s2.json",
    "n": "n is 2 in s1.json and 3 in s2.json",
    "threshold": "the pass threshold is 1.0 in s1.json and 0.5 in s2.json",
    "functions": "the list of eval functions is rewards:exact in s1.json and a:b",
    "data": "the digest of the data is 4f1c",
    "setting": "temperature is not given in s1.json and 0.7 in s2.json",
    "rows": "row 0 is in both s1.json and s2.json",
    "number": "the number of evaluations is 1 in s1.json and 2 in s2.json",
}


def _mixed(what: str) -> list[str]:
    first = write("s1.json", shard(1, 2))
    second: dict[str, SuiteResult] = {
        "model": shard(2, 2, model="other"),
        "n": shard(2, 2, suite_of([[1.0] * 3] * 5)),
        "threshold": shard(2, 2, pass_threshold=0.5),
        "functions": shard(2, 2, eval_fns=("a:b",)),
        "data": shard(2, 2, digest="other"),
        "setting": shard(2, 2, settings={"temperature": 0.7}),
        "rows": replace(shard(2, 2), rows=shard(1, 2).rows[:2], finished=4),
        "incomplete": shard(2, 2, suite_of([[1.0, 1.0], [1.0, None]])),
    }
    if what in second:
        return [first, write("s2.json", second[what])]
    return {
        "missing": lambda: [write("s1.json", shard(1, 3)), write("s3.json", shard(3, 3))],
        "twice": lambda: [first, write("again.json", shard(1, 2))],
        "divisions": lambda: [first, write("other.json", shard(2, 3))],
        "no shard": lambda: [first, write("all.json", WHOLE)],
        "number": lambda: [first, write("s2.json", shard(2, 2), shard(2, 2, name="b", data="b"))],
    }[what]()


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_belong_together_is_refused_by_name(what: str):
    names = _mixed(what)
    Path("whole.json").touch(exist_ok=True)
    before = Path("whole.json").read_text()
    done = merge(*names)
    assert done.exit_code == 1
    assert REFUSED[what] in done.output
    assert Path("whole.json").read_text() == before


def gated(number: int, text: str, /, **fields: Any) -> str:
    """A shard's report with a gate, with other fields."""
    suite = shard(number, 2)
    name = write(
        f"s{number}.json",
        replace(suite, verdicts=(evaluate(parse_gate(text), score_table_of(suite)),)),
    )
    document = json.loads(Path(name).read_text())
    document["gates"][0].update(fields)
    Path(name).write_text(json.dumps(document))
    return name


def test_shards_with_and_without_a_gate_are_refused():
    done = merge(gated(1, "mean >= 0.1"), write("s2.json", shard(2, 2)))
    assert done.exit_code == 1
    assert "the list of gates is mean >= 0.1 in s1.json and none in s2.json" in done.output


def test_the_confidence_is_that_of_whichever_shard_tells_it():
    names = [gated(1, "mean >= 0.1"), gated(2, "mean >= 0.1", confidence=0.5)]
    assert merge(*names).exit_code == 0
    [gate] = json.loads(Path("whole.json").read_text())["gates"]
    assert (gate["confidence"], gate["figure"]["confidence"]) == (0.5, 0.5)


def test_a_gate_that_cannot_be_read_is_reported():
    names = [gated(i, "mean >= 0.1", gate="maen >= 1") for i in (1, 2)]
    done = merge(*names)
    assert done.exit_code == 1
    assert "Error: gate 'maen >= 1': 'maen' is not a metric" in done.output


def test_a_shard_that_stopped_early_is_reported_with_how_to_fill_it():
    part = shard(2, 2, suite_of([[1.0, 1.0], [1.0, None]]))
    stopped = replace(result_of(part), halted=DECIDED)
    report.write(stopped, Path("s2.json"))
    done = merge(write("s1.json", shard(1, 2)), "s2.json")
    assert "run the same command again without --stop-when-decided" in done.output


@pytest.mark.parametrize("why", ["cannot be read: No such file", "it has no evaluation of b"])
def test_a_baseline_that_tells_nothing_is_refused(why: str):
    two = [suite_of([[1.0]] * 2, name=name, data=name) for name in "ab"]
    names = [write(f"s{i}.json", *(shard(i, 2, suite) for suite in two)) for i in (1, 2)]
    if "has no" in why:
        write("old.json", two[0])
    done = merge(*names, "--baseline", "old.json")
    assert done.exit_code == 1
    assert f"--baseline old.json: {why}" in done.output


def test_an_output_that_cannot_be_written_is_reported():
    [name] = shards(1)
    done = CliRunner().invoke(cli, ["eval", "merge", name, "-o", "gone/whole.json"])
    assert done.exit_code == 1
    assert "cannot write gone/whole.json: No such file or directory" in done.output


def test_an_output_that_is_one_of_the_reports_is_refused():
    first, second = shards(2)
    before = Path(second).read_bytes()
    done = CliRunner().invoke(cli, ["eval", "merge", first, second, "-o", f"./{second}"])
    assert done.exit_code == 2
    assert "this is one of the reports to merge" in done.output
    assert Path(second).read_bytes() == before


def test_clusters_of_which_each_shard_has_some_rows_are_those_of_the_whole():
    scores = [[1.0], [0.0], [1.0], [1.0], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0]]
    clusters = {f"d{at}": [2 * at, 2 * at + 1] for at in range(5)}
    made = suite_of(scores, clusters=clusters, settings={"cluster": "document"})
    whole = aggregate(made.info, made.runs, selected=10, confidence=0.9)
    assert merge(*(write(f"s{i}.json", shard(i, 2, whole)) for i in (1, 2))).exit_code == 1
    [found] = read_result(Path("whole.json")).suites
    assert found.functions[0].figures["mean"] == whole.functions[0].figures["mean"]
    assert {name: list(rows) for name, rows in found.info.clusters.items()} == clusters
    assert found.info.cluster_column == "document"
