"""`osmosis init --data`: the evaluation of a file, and the gate that its first session leaves."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.support.command import Osmosis

SUMS = [(number, number + 3) for number in range(12)]


def write_rows(path: Path, rows: Iterable[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """Twelve sums with worked solutions, of which one is wrong."""
    rows = (
        {"question": f"What is {a} + 3?", "answer": f"{a} and 3: <<...>>\n#### {b + (a == 5)}"}
        for a, b in SUMS
    )
    return write_rows(tmp_path / "sums.jsonl", rows)


def test_what_it_writes_runs_and_is_held_at_what_it_reached(
    osmosis: Osmosis, pytester: pytest.Pytester, sums: Path
):
    words = ["--data", str(sums), "--model", "embedded/perfect", "--yes"]
    status, out, _ = osmosis("init", *words)
    assert status == 0
    assert "init --gate first.json" in out and 'osmosis_eval_fn = ["number"]' in out
    assert (pytester.path / "sums.jsonl").read_bytes() == sums.read_bytes()
    readme = (pytester.path / "README.md").read_text()
    assert "`number` (the truths end in #### and a number)" in readme
    written = set(out.partition("\n\n")[0].splitlines()) - {"README.md", "sums.jsonl"}
    assert written == set(re.findall(r"(?m)^\| `(.+?)`", readme))

    first = pytester.runpytest_subprocess("-n0", "--osmosis-output=first.json")
    first.assert_outcomes(passed=11, failed=1)
    # Agresti and Coull: 12.92 of 15.84 is 0.816, less 1.96 standard errors of 0.0975.
    gates = osmosis.document("init", "--gate", "first.json")["gates"]
    assert gates == ["mean >= 0.62"]
    workflow = (pytester.path / ".github/workflows/evaluate.yml").read_text()
    [command] = [
        step["run"]
        for step in yaml.safe_load(workflow)["jobs"]["pull-request"]["steps"]
        if "--osmosis-baseline" in step.get("run", "")
    ]
    words = shlex.split(command.replace("\\\n", " "))
    assert words[-4:] == [
        "--osmosis-gate", "mean - baseline >= -0.02", "--osmosis-gate", "mean >= 0.62",
    ]  # fmt: skip
    again = pytester.runpytest_subprocess("-n0", "--osmosis-fresh")
    assert again.ret == 0
    again.stdout.fnmatch_lines(["gate  mean >= 0.62  0.9167*PASSED"])
    assert "has osmosis_gates already" in osmosis.error("init", "--gate", "first.json", status=1)
    (pytester.path / "pyproject.toml").unlink()
    assert "has no line '# osmosis_gates" in osmosis.error("init", "--gate", "first.json", status=1)


def test_the_workflow_installs_requirements_and_compares_with_main(
    osmosis: Osmosis, pytester: pytest.Pytester, sums: Path
):
    (pytester.path / "requirements.txt").write_text("mine\n")
    osmosis("init", "--data", str(sums), "--model", "anthropic/claude", "--yes")
    assert (pytester.path / "requirements.txt").read_text() == "mine\n"
    jobs = yaml.safe_load((pytester.path / ".github/workflows/evaluate.yml").read_text())["jobs"]
    main, pull = jobs["main"]["steps"], jobs["pull-request"]["steps"]
    for steps in (main, pull):
        assert any("-r requirements.txt" in step.get("run", "") for step in steps)
        [asked] = [step for step in steps if "ANTHROPIC_API_KEY" in step.get("env", {})]
        assert asked["run"].startswith("pytest -m osmosis ")
    paths = [step["with"]["path"] for step in main + pull if "cache/" in step.get("uses", "")]
    assert paths == ["main.json", "main.json"]
    assert "--osmosis-baseline=main.json" in json.dumps(pull)


def test_what_the_user_says_takes_the_place_of_what_is_seen(
    osmosis: Osmosis, pytester: pytest.Pytester, tmp_path: Path
):
    rows = [{"ask": "What is 2 + 3?", "reply": "?", "sure": "5"}]
    data = write_rows(tmp_path / "odd.jsonl", rows)
    maps = ["--map", "ask=user_prompt", "--map", "sure=ground_truth"]
    osmosis("init", "-d", str(data), *maps, "--eval-fn", "exact", "--model", "embedded", "--yes")
    settings = (pytester.path / "pyproject.toml").read_text()
    assert "ask=user_prompt" in settings and '["exact"]' in settings
    assert pytester.runpytest_subprocess("-n0", "--collect-only").ret == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--data", "gone.jsonl"], "--data gone.jsonl: no such file"),
        (["--data", "notes.jsonl"], "no column is a question: give --map COLUMN=user_prompt"),
        (["--data", "two.jsonl"], "two columns may be the ground truth: give --map "),
        (["--model", "m"], "--model needs --data too"),
        (["--gate", "notes.jsonl"], "--gate notes.jsonl: "),
        (["--data", "two.jsonl", "--gate", "two.json"], "the gate is of a session that has run"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    osmosis: Osmosis, pytester: pytest.Pytester, words: list[str], said: str
):
    write_rows(pytester.path / "notes.jsonl", [{"x": 1}, {"x": 2}])
    two = [{"question": f"{n}?", "label": n, "answer": f"it is {n}"} for n in range(3)]
    write_rows(pytester.path / "two.jsonl", two)
    status, out, err = osmosis("init", *words, "--yes")
    assert status != 0 and said in err and "Traceback" not in out + err
    assert not (pytester.path / "pyproject.toml").exists()


def test_a_gate_that_could_not_fail_is_none(osmosis: Osmosis, pytester: pytest.Pytester):
    write_rows(pytester.path / "data.jsonl", [{"question": "What is 2 + 3?", "answer": "6"}] * 2)
    words = ("--osmosis-data=data.jsonl", "--osmosis-model=embedded", "--osmosis-output=out.json")
    pytester.runpytest_subprocess("-n0", "--eval-fn=number", *words)
    message = osmosis.error("init", "--gate", "out.json", status=1)
    assert "a gate that low could not fail; evaluate more rows" in message
