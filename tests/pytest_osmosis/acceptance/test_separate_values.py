"""Values of options that are words of their own: none moves rootdir or the ini file."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from pytest_osmosis.features.table import OPTIONS
from tests.support.project import Project, Session

PATHS = [
    option.flag_name
    for option in OPTIONS
    if option.is_path
    or option.name in ("data", "env-file", "baseline", "rescore", "rows", "inputs")
]
OUTSIDE = ["../main/data.jsonl", "../main/new", "../main", "{top}/main/x"]
CODE = ["--osmosis-agent", "--osmosis-grader", "--osmosis-eval-fn", "--eval-fn"]

AGENT = """
def agent(messages):
    return messages[-1]["content"]
"""


@pytest.fixture
def branch(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project beside `../main`; both have an ini file and an evaluation in it."""
    for name in ("branch", "main"):
        project.write(f"{name}/pytest.ini", "[pytest]\nosmosis_data = data.jsonl\n")
        project.write(f"{name}/agent.py", AGENT)
        row = {"user_prompt": "a", "ground_truth": "a", "id": name}
        project.rows(row, name=f"{name}/data.jsonl")
    project.write("main/sub/there", "")
    monkeypatch.chdir(project.path / "branch")
    return project


def refusal(words: tuple[str, ...], session: Session) -> None:
    option, value = words
    assert session.ret == 4
    assert session.mistake == (
        f"{option} {value}: pytest takes a path that is a word of its own for one of tests, and "
        f"may take rootdir and ini file from there; write {option}={value}"
    )


@pytest.mark.fault("a path stands alone behind an option: `--osmosis-baseline ../main/main.json`")
@pytest.mark.parametrize(
    ("option", "value"),
    [*zip(PATHS, cycle(OUTSIDE)), *(("--osmosis-output", value) for value in OUTSIDE)],
)
def test_a_path_outside_of_rootdir_is_refused_whether_it_is_there_or_not(
    branch: Project, option: str, value: str
):
    words = option, value.replace("{top}", str(branch.path))
    refusal(words, branch.plain("--osmosis-agent=agent.py:agent", *words))


@pytest.mark.parametrize("option", CODE)
def test_so_is_the_file_of_code(branch: Project, option: str):
    words = option, "../main/agent.py:agent"
    refusal(words, branch.plain(*words))


@pytest.mark.parametrize("option", ["--osmosis-by", "--osmosis-model", "--osmosis-gate"])
def test_any_value_is_refused_where_it_moves_rootdir(branch: Project, option: str):
    refusal((option, "../main"), branch.plain(option, "../main"))


def test_a_folder_below_that_has_an_ini_file_moves_it_too(branch: Project):
    branch.write("branch/sub/pytest.ini", "[pytest]\n")
    branch.rows("a", name="branch/sub/data.jsonl")
    words = "--osmosis-data", "sub/data.jsonl"
    refusal(words, branch.plain("--osmosis-agent=agent.py:agent", *words))


def test_options_of_the_environment_are_read_likewise(
    branch: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--osmosis-run-dir '../main/kept runs'")
    session = branch.plain()
    assert session.ret == 4
    assert session.mistake.endswith("write '--osmosis-run-dir=../main/kept runs'")


@pytest.mark.parametrize("inner", ["", "@inner"])
def test_so_are_those_of_a_file_of_options(branch: Project, inner: str):
    words = "--osmosis-baseline", "../main/data.jsonl"
    branch.write("branch/inner", "\n".join(words))
    branch.write("branch/words", inner or "\n".join(words))
    refusal(words, branch.plain("-q", "@words"))
    branch.write("branch/inner", "--osmosis-agent=agent.py:agent\n--eval-fn=exact")
    branch.write("branch/words", "@inner\n--osmosis-output\nout.json")
    assert branch.plain("@words").ret == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--osmosis-data", "data.jsonl", "--osmosis-output", "out.json"],
        ["--osmosis-data", "./data.jsonl", "--osmosis-html", "o.html", "data.jsonl"],
        ["--osmosis-output=../main/out.json", "--osmosis-run-dir=../main/runs"],
        ["--osmosis-system-prompt", "/no_think"],
        ["-c", "pytest.ini", "--osmosis-agent-timeout", "9", "--osmosis-record", "taped"],
        ["--rootdir=..", "--osmosis-data", "data.jsonl", "--osmosis-output", "../main/o.json"],
    ],
)
def test_what_moves_nothing_is_taken(branch: Project, words: list[str]):
    session = branch.plain("--osmosis-agent=agent.py:agent", "--eval-fn", "exact", *words)
    assert session.ret == 0, session.err
    assert f"rootdir: {branch.path}" in session.out


@pytest.mark.slow
def test_workers_have_the_same_rootdir_and_ini_file(branch: Project):
    branch.write(
        "branch/conftest.py",
        "import os\nfrom pathlib import Path\n\n\ndef pytest_sessionstart(session):\n"
        "    name = os.environ.get('PYTEST_XDIST_WORKER', 'controller')\n"
        "    Path(__file__).with_name(f'{name}.txt').write_text(str(session.config.inipath))\n",
    )
    words = "--osmosis-data=../main/data.jsonl", "--osmosis-run-dir=../main/runs", "--n=2"
    session = branch.plain("--osmosis-agent=agent.py:agent", "--eval-fn=exact", "-n2", *words)
    assert session.ret == 0, session.err
    there = {path.stem: Path(path.read_text()) for path in (branch.path / "branch").glob("*.txt")}
    assert there.keys() == {"controller", "gw0", "gw1"}
    assert set(there.values()) == {branch.path / "branch/pytest.ini"}
