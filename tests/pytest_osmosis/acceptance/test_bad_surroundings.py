"""What happens around a session: pytest's own options, pipes, settings, keys in odd places."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support import report_page
from tests.support.modes import each_mode
from tests.support.project import AGENT, Project

KEY = "sk-proj-a+b/c=0123456789"


@pytest.fixture
def three(project: Project) -> Project:
    project.rows("alpha", {"user_prompt": "beta", "ground_truth": "x"}, "gamma")
    return project


@pytest.mark.fault(
    "no terminal, cache, logging or JUnit plugin; `-q -q`",
    "`-W error`",
    "`--import-mode=importlib`, the plugin named twice, plugins not loading themselves",
)
@pytest.mark.parametrize(
    "options",
    [
        ["-pno:terminal"],
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
) -> None:
    session = three.run(*options)
    assert session.ret == 1, session.out + session.err
    assert [run["outcome"] for run in session.runs] == ["passed", "failed", "passed"]
    assert "INTERNALERROR" not in session.out


@pytest.mark.fault("no xdist, `-n 0`, `-n 1`, `-n 2`")
def test_it_works_without_xdist(three: Project) -> None:
    session = three.plain("-pno:xdist", *three.options())
    assert [run["outcome"] for run in session.runs] == ["passed", "failed", "passed"]


@pytest.mark.fault("`--pdb`, `--trace`")
@pytest.mark.parametrize("debugger", ["--pdb", "--trace"])
def test_a_debugger_and_workers_do_not_go_together(three: Project, debugger: str) -> None:
    session = three.run(debugger, workers=2)
    assert (session.ret, three.endpoint.requests) == (4, 0)
    assert f"{debugger} is incompatible with" in session.err


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("HTTPS_PROXY", "http://host:port", "HTTPS_PROXY is not a proxy's address: write"),
        ("SSL_CERT_FILE", "a b", "SSL_CERT_FILE names 'a b', which does not"),
    ],
)
def test_a_variable_that_keeps_every_run_from_the_model_stops_the_session(
    three: Project, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(variable, value)
    session = three.run("--osmosis-batch-size=1", base_url="https://model.example/v1")
    assert session.ret == 1
    assert sentence in session.refusal
    assert "1 of 3 runs was tried" in session.refusal


@pytest.mark.fault("the reader of a pipe goes away")
@pytest.mark.slow
@each_mode
def test_a_reader_that_goes_away_takes_nothing_with_it(three: Project, workers: int) -> None:
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


@pytest.mark.fault("the key is in `addopts` or PYTEST_ADDOPTS")
def test_a_key_in_the_ini_file_or_in_addopts_is_warned_about(
    three: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.endpoint.api_key = KEY
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--osmosis-api-key={KEY}")
    session = three.run()
    assert session.outcomes == {"passed": 2, "failed": 1, "warnings": 1}
    assert "--osmosis-api-key-env" in session.out
    assert KEY not in session.out


LOUD = AGENT.replace(
    "        answer = await ctx.chat",
    """        import logging, os, sys
        def check(api_key):
            spelled = os.environ["SPELLED"].split("\\n")
            for text in spelled:
                print("out", text)
                print("err", text, file=sys.stderr)
                logging.getLogger("httpx").warning("log %s", text)
            raise RuntimeError("no: " + " ".join(spelled))
        if wish == "loud":
            check(os.environ["SPELLED"])
        answer = await ctx.chat""",
)


def spellings() -> list[str]:
    """Ways in which a key may be written."""
    raw = KEY.encode()
    phases = [base64.b64encode(b"x" * phase + raw + b"yz").decode() for phase in range(3)]
    return [KEY, json.dumps({"k": KEY}), quote(KEY, safe=""), *phases]


@pytest.mark.fault(
    "an answer or an error quotes the key",
    "a key finds its way into an answer, an error, a log or the output",
    "a traceback shows arguments and locals",
    "the provider echoes the key",
    "loggers run at DEBUG",
)
@each_mode
@pytest.mark.parametrize(
    "options",
    [
        ["--tb=long", "-l"],
        pytest.param(["--tb=native"], marks=pytest.mark.slow),
        pytest.param(["--tb=short", "-v"], marks=pytest.mark.slow),
    ],
)
def test_a_key_is_nowhere_in_any_spelling(
    project: Project, monkeypatch: pytest.MonkeyPatch, options: list[str], workers: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SPELLED", "\n".join(spellings()))
    project.write("agent.py", LOUD)
    project.endpoint.api_key = KEY
    project.endpoint.answers = lambda ask: f"your key is {ask.headers['authorization']}"
    project.rows("loud", "quiet")
    session = project.run(
        *options,
        "-rA",
        "--junitxml=out.xml",
        "--osmosis-html=out.html",
        "--osmosis-markdown=out.md",
        "--osmosis-runs-table=out.csv",
        f"--osmosis-debug-dir={project.path / 'debug'}",
        "--log-level=DEBUG",
        workers=workers,
    )
    assert session.outcomes == {"failed": 2}
    assert "RuntimeError: no: ***" in session.out
    kept = [path for path in project.path.rglob("*") if path.is_file() and written(path)]
    assert len(kept) > 8
    texts = {str(path): path.read_bytes().decode("utf-8", "replace") for path in kept}
    texts["page"] = report_page.text_of(project.path / "out.html")
    assert "your key is " in texts["page"]
    texts |= {"stdout": session.out, "stderr": session.err}
    for name, text in texts.items():
        for spelled in spellings():
            assert spelled not in text, name


def written(path: Path) -> bool:
    """Whether a session wrote the file, and not the test."""
    return path.suffix not in (".py", ".pyc") and path.name != "data.jsonl"


@pytest.mark.fault("a secret is short, or a common word")
def test_a_short_or_common_secret_is_not_masked_and_that_is_said(
    three: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    session = three.run()
    assert session.out.count("the key in OPENAI_API_KEY is too short or too common a word") == 1
