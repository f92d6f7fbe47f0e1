"""A saved report reads back into what its session came to: figures, intervals, gates, verdict."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.features.html.page_data import suites_json
from pytest_osmosis.reports.json_writer import document_of
from pytest_osmosis.reports.saved_report import read_saved, with_dataset
from pytest_osmosis.reports.summary import summary
from pytest_osmosis.reports.view import view_of
from pytest_osmosis.session.recorder import Recorder
from pytest_osmosis.suite_results import EvalResult, SuiteResult
from tests.support.endpoints import Ask, error_reply
from tests.support.project import AGENT, KEPT, REWARDS, Project

NAMES = ["a", "bb", "ccc", "right", "wrong", "flaky", "raise", "refused"]
ROWS = [
    {"user_prompt": name, "ground_truth": name, "level": at % 2, "id": f"id-{name}"}
    for at, name in enumerate(NAMES)
]
HUGE = "\n\ndef huge(solution_str, **given):\n    return 1e300 * len(solution_str)\n"
MARKED = """
from pytest_osmosis import osmosis

made = osmosis(agent="agent:agent_loop", data="data.jsonl", n=2)


@made
def test_it(rollout):
    rollout.record_score("length", len(rollout.text))
    if "b" in rollout.text:
        rollout.record_score("style", 0.5, reason="so", pass_threshold=0.4)
    assert rollout.text == rollout.ground_truth


@made
async def test_other(rollout):
    assert rollout.row["level"] == 0
"""


def answers(ask: Ask) -> Any:
    """Right for most rows; another model is wrong in one more."""
    if ask.model == "refused":
        return error_reply(401, "no such key")
    if ask.row == "refused":
        return error_reply(400, "no")
    if ask.row == "flaky":
        return ask.row if ask.body.get("seed", 0) % 2 else "no"
    is_wrong = ask.row == "wrong" or (ask.row == "bb" and ask.model == "other")
    return "no" if is_wrong else ask.row


class Observed:
    """The result that a session came to; it is interrupted after so many runs."""

    def __init__(self, interrupts_after: int = 0) -> None:
        self.result: EvalResult | None = None
        self.left = interrupts_after

    def pytest_runtest_logfinish(self) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        for plugin in config.pluginmanager.get_plugins():
            if isinstance(plugin, Recorder):
                self.result = plugin.result


@pytest.fixture
def project(project: Project) -> Project:
    """Rows of every sort, in two data files."""
    project.endpoint.answers = answers
    project.write("agent.py", f"{AGENT}\nother_loop = Agent()\n")
    project.write("rewards.py", REWARDS + HUGE)
    project.rows(*ROWS)
    project.rows(*ROWS[:5], name="more.jsonl")
    return project


GATES = tuple(
    f"--osmosis-gate={gate}"
    for gate in ("mean >= 0.5", "pass^2 >= 0.99", "tokens <= 1", "cost_usd <= 1", "errors == 0")
)
COMPARED = ("--osmosis-baseline=base.json", "--osmosis-gate=mean - baseline >= 0.1")
KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "several runs": ("--osmosis-n=3", "--osmosis-seed=1"),
    "gates": ("--osmosis-n=2", *GATES),
    "gates with confidence": ("--osmosis-n=2", "--osmosis-confidence=0.8", *GATES),
    "gates on figures": ("--osmosis-n=2", "--osmosis-confidence=none", *GATES),
    "a gate on each row": ("--osmosis-n=2", "--osmosis-gate=each row >= 0.5"),
    "decided": ("--osmosis-gate=mean >= 0.99", "--osmosis-stop-when-decided"),
    "confidence alone": ("--osmosis-confidence=0.8", "--osmosis-by=level", "--osmosis-by=id"),
    "a baseline": ("--osmosis-n=3", *COMPARED),
    "a baseline model": ("--osmosis-baseline-model=other", "--osmosis-gate=mean - baseline >= 0"),
    "models": ("--osmosis-model=other", "--osmosis-model=x", "--osmosis-gate=mean[model=x] > 0.5"),
    "agents and models": (
        "--osmosis-agent=agent:other_loop", "--osmosis-model=other", "--osmosis-confidence=0.9",
        "--osmosis-gate=mean - baseline >= -0.1",
    ),
    "models and a baseline": ("--osmosis-model=other", *COMPARED),
    "several data": ("--osmosis-data=more.jsonl", "--osmosis-by=level"),
    "several data, a baseline model": (
        "--osmosis-baseline-model=other", "--osmosis-data=more.jsonl", "--osmosis-by=level",
    ),
    "several data, models": ("--osmosis-model=other", "--osmosis-data=more.jsonl"),
    "thresholds": (
        "--eval-fn=rewards:length", "--pass-threshold=length=0.3", "--pass-threshold=0.9",
    ),
    "functions that fail": ("--eval-fn=rewards:judge", "--osmosis-gate=errors <= 0"),
    "scores out of proportion": ("--eval-fn=rewards:huge", "--osmosis-n=2"),
    "prices": ("--osmosis-price-per-mtok=1,2", "--osmosis-gate=cost_usd <= 1"),
    "a key that is refused": ("--osmosis-model=refused", "--osmosis-gate=mean >= 0.5"),
    "a budget": ("--osmosis-max-total-tokens=40",),
    "a selection": ("-k", "id-a or wrong"),
    "the first failure": ("-x",),
    "a sample": ("--osmosis-sample=3", "--osmosis-n=2"),
    "no answers": ("--osmosis-no-answers",),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_session(project: Project, kind: str):
    if set(COMPARED) <= set(KINDS[kind]):
        project.run("--osmosis-no-journal", output="base.json", n="3", model="other")
    check(project, *project.options("--osmosis-no-journal", *KINDS[kind]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("--osmosis-n=1",), ("--osmosis-n=2", "--osmosis-extend")),
        (("-k", "id-a"), ()),
        ((), ("--osmosis-fresh", "--osmosis-baseline=last", "--osmosis-gate=mean - baseline > -1")),
        (("--osmosis-record=tape",), ("--osmosis-replay=tape",)),
        (("--osmosis-n=2",), ("--osmosis-retry-failed", "--osmosis-n=2")),
    ],
)
def test_a_session_after_another(project: Project, first: tuple[str, ...], then: tuple[str, ...]):
    project.run(*first)
    check(project, *project.options(*then))


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", "-k id-a", "--osmosis-gate=mean[length]>2"])
def test_marked_functions_with_recorded_scores(project: Project, more: str):
    project.write("test_marked.py", MARKED)
    usual = project.options("test_marked.py", agent=None, data=None, eval_fn=None)
    check(project, *usual, *more.split())


@pytest.mark.slow
def test_what_was_scored_again(project: Project):
    project.run(n="2")
    gate = ("--pass-threshold=0.2", "--osmosis-gate=mean >= 0.1")
    again = (f"--osmosis-rescore={KEPT}", "--osmosis-output=out.json", "--eval-fn=rewards:length")
    check(project, *again, *gate)


def test_a_session_that_was_interrupted(project: Project):
    check(project, *project.options("--osmosis-n=2", *GATES), interrupts_after=3)


@pytest.mark.slow
@pytest.mark.parametrize("more", [GATES[:1], ("--osmosis-model=other", "--osmosis-by=level")])
def test_what_was_merged_is_the_whole(
    project: Project, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
):
    options = ("--osmosis-no-journal", "--osmosis-confidence=0.9", *more)
    for number in (1, 2):
        project.run(f"--osmosis-shard={number}/2", *options, output=f"{number}.json", n="3")
    whole = check(project, *project.options(*options, n="3"))
    monkeypatch.chdir(project.path)
    CliRunner().invoke(cli, ["eval", "merge", "1.json", "2.json", "-o", "merged.json"])
    merged = read_saved(Path("merged.json")).result
    assert document_of(merged) == json.loads(Path("merged.json").read_text())
    assert [figures(each) for each in merged.suites] == [figures(each) for each in whole.suites]
    assert merged.state == whole.state


def figures(suite: SuiteResult) -> tuple[object, ...]:
    return suite.functions, suite.verdicts, suite.verdict, suite.sections


def check(project: Project, *options: str, interrupts_after: int = 0) -> EvalResult:
    """Run a session; return its result, which the report that it saved reads back into."""
    observed = Observed(interrupts_after)
    project.pytester.inline_run("-n0", *options, plugins=[observed], no_reraise_ctrlc=True)
    path = project.path / "out.json"
    assert observed.result is not None
    own, saved = (comparable(each) for each in (observed.result, read_saved(path).result))
    assert document_of(saved) == json.loads(path.read_text())
    assert view_of(saved) == view_of(own)
    assert json.loads(suites_json(saved)) == json.loads(suites_json(own))
    assert summary(saved, kept=False, width=100) == summary(own, kept=False, width=100)
    assert saved == own
    return own


def comparable(result: EvalResult) -> EvalResult:
    """The result with what the dataset holds of its rows, without what only a session needs."""
    suites = with_dataset(result)[0].suites
    return replace(result, suites=tuple(_comparable(each) for each in suites))


def _comparable(suite: SuiteResult) -> SuiteResult:
    return replace(
        suite,
        info=replace(suite.info, shares=None, variant=""),
        rows=tuple(
            replace(row, runs=tuple(replace(run, fatal=False) for run in row.runs))
            for row in suite.rows
        ),
    )
