"""What happens around a session: pytest's own options, pipes, settings, keys in odd places."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project


@pytest.fixture
def three(project: Project) -> Project:
    project.rows("alpha", {"user_prompt": "beta", "ground_truth": "x"}, "gamma")
    return project


@pytest.mark.fault(
    "no terminal, cache, logging or JUnit plugin; `-q -q`",
    "`-W error`",
    "no xdist, `-n 0`, `-n 1`, `-n 2`",
    "`--import-mode=importlib`, the plugin named twice, plugins not loading themselves",
)
@pytest.mark.parametrize(
    "options",
    [
        ["-pno:terminal"],
        ["-pno:xdist"],
        ["-qq"],
        ["-Werror"],
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                ["-pno:cacheprovider"],
                ["-pno:logging"],
                ["-pno:junitxml"],
                ["-pno:capture", "-pno:debugging"],
                ["-posmosis"],
                ["--import-mode=importlib"],
                ["-Werror", "-n2"],
                ["-qq", "-n2"],
            )
        ),
    ],
    ids=" ".join,
)
def test_the_report_is_the_same_without_parts_of_pytest_and_with_others(
    three: Project, options: list[str]
):
    session = three.plain(*three.options(*options))
    assert session.ret == 1, session.out + session.err
    assert [run["outcome"] for run in session.runs] == ["passed", "below", "passed"]
    assert "INTERNALERROR" not in session.out
    assert ("osmosis summary" in session.out) is not ({"-qq", "-pno:terminal"} & {*options})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("HTTPS_PROXY", "http://host:port", "HTTPS_PROXY is not a proxy's address: write"),
        ("SSL_CERT_FILE", "a b", "SSL_CERT_FILE names 'a b', which does not"),
    ],
)
def test_a_variable_that_keeps_every_run_from_the_model_stops_the_session(
    three: Project, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
):
    monkeypatch.setenv(variable, value)
    session = three.run("--osmosis-batch-size=1", base_url="https://model.example/v1")
    assert session.ret == 1
    assert sentence in session.refusal
    assert "1 of 3 runs was tried" in session.refusal


@pytest.mark.fault("the reader of a pipe goes away")
@pytest.mark.slow
@each_mode
def test_a_reader_that_goes_away_takes_nothing_with_it(three: Project, workers: int):
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *three.options(f"-n{workers}", "-v")],
        cwd=three.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    while b"PASSED" not in process.stdout.readline():
        assert process.poll() is None
    process.stdout.close()
    process.wait(60)
    assert process.returncode != 0
    report = json.loads((three.path / "out.json").read_text())
    assert report["rows"][0]["runs"][0]["outcome"] == "passed"
    journal = next((three.path / ".osmosis").rglob("journal.jsonl")).read_text()
    assert journal.endswith("\n")
    assert all(json.loads(line) for line in journal.splitlines())


@pytest.mark.fault("a secret is short, or a common word")
def test_a_short_or_common_secret_is_not_masked_and_that_is_said(
    three: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    session = three.run()
    assert session.out.count("the key in OPENAI_API_KEY is too short or too common a word") == 1
