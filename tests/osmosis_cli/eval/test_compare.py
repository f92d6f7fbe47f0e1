"""`osmosis eval compare`: reports held against the first one, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from pytest_osmosis.reports import json_writer as report
from pytest_osmosis.suite_results import SuiteResult
from tests.support.made_results import NASTY, result_of, suite_of

Written = Callable[..., str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes a report of suites under a name, and gives the name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, *suites: SuiteResult) -> str:
        report.write(result_of(*suites), Path(name))
        return name

    return write


def compare(*words: str) -> Result:
    return CliRunner().invoke(cli, ["eval", "compare", *words])


def test_it_tells_the_difference_and_which_rows_regressed_or_improved(written: Written):
    before = written("before.json", suite_of([[1.0] * 5, [1.0] * 5, [0.0] * 5], answer="old"))
    after = written("after.json", suite_of([[1.0] * 5, [0.0] * 5, [1.0] * 5], answer="new"))
    done = compare(before, after)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    said = "1 row regressed, no significant difference of the mean"
    assert lines[0] == f"{said}: mean 0.667 → 0.667,"
    assert lines[1].startswith("  +0.000 (95% -1.000")
    assert lines[3:5] == [
        "baseline  before.json  (calc-7b, 15 runs, a run passes from 1.0)",
        "current   after.json  (calc-7b, 15 runs, a run passes from 1.0)",
    ]
    assert f"rewards:exact, 3 rows compared: {said}" in " ".join(done.output.split())
    [mean] = [at for at, line in enumerate(lines) if line.split()[:2] == ["mean", "0.667"]]
    assert lines[mean].split()[2:4] == ["0.667", "+0.000"]
    changed = lines.index("  rows: 1 regressed, 1 improved")
    assert changed < mean
    assert [*lines[changed + 1 : changed + 7], *lines[-3:]] == [
        "    regressed  row-1  5/5 → 0/5, p of its runs 0.008",
        "      baseline  old", "      current   new",
        "    improved   row-2  0/5 → 5/5, p of its runs 0.008",
        "      baseline  old", "      current   new",
        "  regressed, improved: by an exact permutation test of the row's runs,",
        "  Benjamini-Hochberg at 10% over 2 rows that could show a change; the fall of",
        "  these rows is more than chance, that of the mean need not be",
    ]  # fmt: skip
    assert max(map(len, lines)) <= 80


def test_rows_that_chance_explains_are_listed_by_v(written: Written):
    before = written("before.json", suite_of([[1.0] * 5] * 14))
    after = written("after.json", suite_of([[0.0] * 5] * 12 + [[0.0, *[1.0] * 4]] * 2))

    def listed(*words: str) -> list[str]:
        lines = compare(before, after, *words).output.splitlines()
        return [line.split("  ")[2] for line in lines if line.startswith("    ") and line[4] != " "]

    assert listed() == [*["regressed"] * 10, "and 2 more: -v lists them"]
    assert listed("-v") == [*["regressed"] * 12, *["changed"] * 2]


@pytest.mark.parametrize(("later", "word"), [(0.0, "worse"), (0.5, "better")])
def test_it_begins_with_what_the_comparison_comes_to(
    written: Written, monkeypatch: pytest.MonkeyPatch, later: float, word: str
):
    before = written("before.json", suite_of([[0.25] * 5 for _ in range(12)]))
    after = written("after.json", suite_of([[later] * 5 for _ in range(12)]))
    first, *_ = compare(before, after).output.splitlines()
    assert first.startswith(f"{word}: mean 0.250 → {later:.3f}, {later - 0.25:+.3f} (95% ")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = CliRunner().invoke(cli, ["eval", "compare", before, after], color=True)
    assert shown.output.startswith(f"\x1b[{31 if word == 'worse' else 32}m{word}\x1b[0m: mean")


def test_an_id_of_several_lines_takes_one(written: Written):
    for name, score in (("before.json", 1.0), ("after.json", 0.0)):
        suite = suite_of([[score] * 5])
        written(name, replace(suite, rows=(replace(suite.rows[0], row_id="a\n::error::b"),)))
    lines = compare("before.json", "after.json").output.splitlines()
    assert "    regressed  a ::error::b  5/5 → 0/5, p of its runs 0.008" in lines


def test_each_further_report_is_compared_with_the_first(written: Written):
    names = [written(f"{i}.json", suite_of([[float(i)], [1.0]])) for i in range(3)]
    lines = compare(*names).output.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("current ")] == names[1:]
    assert [line.split()[1] for line in lines if line.startswith("baseline ")] == names[:1] * 2


def test_the_same_runs_do_not_differ(written: Written):
    name = written("same.json", suite_of([[1.0], [0.0]]))
    assert "rewards:exact, 2 rows compared: no difference" in compare(name, name).output


def test_what_differs_in_the_settings_is_reported(written: Written):
    before = written("a.json", suite_of([[1.0, 1.0], [1.0, 0.0]], pass_threshold=0.5))
    after = written("b.json", suite_of([[1.0], [1.0], [0.0]], digest="other"))
    printed = compare(before, after).output
    assert max(map(len, printed.splitlines())) <= 80
    output = " ".join(printed.split())
    assert "n is 1, in the baseline 2" in output
    assert "the pass threshold is 1, in the baseline 0.5" in output
    assert "1 row is not in the baseline" in output


def test_several_suites_are_matched_by_name(written: Written):
    a, b = (suite_of([[1.0]], name=name, data=name) for name in ("a.jsonl", "b.jsonl"))
    done = compare(written("1.json", a, b), written("2.json", b, suite_of([[0.0]])))
    assert "b.jsonl" in done.output
    assert "not compared, in one report only: a.jsonl, data.jsonl" in done.output


def test_reports_with_nothing_in_common_are_refused(
    written: Written, capsys: pytest.CaptureFixture[str]
):
    suites = [suite_of([[1.0]], name=f"{name}.jsonl", data=name) for name in "abcd"]
    written("1.json", *suites[:2])
    written("2.json", *suites[2:])
    assert "1.json and 2.json have no evaluation in common" in refused(capsys)


def test_one_evaluation_each_with_no_row_in_common_is_refused(
    written: Written, capsys: pytest.CaptureFixture[str]
):
    for name, digest in (("1.json", "one"), ("2.json", "two")):
        document = json.loads(Path(written(name, suite_of([[1.0]]))).read_text())
        document["rows"][0]["digest"] = digest
        Path(name).write_text(json.dumps(document))
    assert "1.json and 2.json have nothing in common: no row is in both" in refused(capsys)
    text = Path(written("2.json", suite_of([[1.0]]))).read_text()
    Path("2.json").write_text(text.replace("rewards:exact", "other:fn"))
    assert "they have other eval functions (rewards:exact and other:fn)" in refused(capsys)


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of two reports that nothing can be compared of."""
    assert run(cli, ["eval", "compare", "1.json", "2.json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_json_is_one_document(written: Written):
    before = written("before.json", suite_of([[1.0], [1.0]]))
    after = written("after.json", suite_of([[1.0], [0.0]], answer=NASTY))
    document = json.loads(compare("--json", before, after).stdout)
    [suite] = document["comparisons"][0]["suites"]
    [function] = suite["eval_fns"]
    assert function["differences"][0]["metric"] == "mean"
    [row] = function["changes"]
    assert (row["name"], row["verdict"], row["answer"]) == ("row-1", "changed", NASTY)
    assert "2 rows with fewer than 3 runs on a side can show nothing" in function["rule"]


@pytest.mark.parametrize("words", [[], ["one.json"]], ids=len)
def test_one_report_is_not_enough(words: list[str]):
    assert compare(*words).exit_code == 2


def test_a_file_that_is_no_report_is_named(written: Written, tmp_path: Path):
    good = written("good.json", suite_of([[1.0]]))
    (tmp_path / "bad.json").write_text("{}")
    done = compare(good, "bad.json")
    assert done.exit_code == 1
    assert "bad.json: not an evaluation's report: config is missing" in done.output


def test_text_of_models_cannot_steer_the_terminal(written: Written):
    nasty = "\x1b[2J\x1b]0;owned\x07 ok"
    before = written("before.json", suite_of([[1.0] * 5], answer=nasty))
    output = compare(before, written("after.json", suite_of([[0.0] * 5], answer=nasty))).output
    assert "\x1b" not in output
    assert "\\x1b[2J" in output
