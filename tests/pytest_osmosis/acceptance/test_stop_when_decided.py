"""Stopping when every gate is decided: fewer calls, the same verdicts, what was saved is said."""

from __future__ import annotations

import json
import random

import pytest

from tests.modes import each_mode
from tests.project import Project, Session
from tests.random_suites import FUNCTIONS, Suite, random_gate, suites

STOP = "--osmosis-stop-when-decided"


@pytest.fixture
def easy(project: Project) -> Project:
    """Twenty rows that pass, and a test beside them."""
    project.rows(*(f"row {number}" for number in range(20)))
    project.write("test_unit.py", "def test_unit(): pass\n")
    return project


def verdicts(session: Session) -> dict[str, str]:
    return {gate["gate"]: gate["outcome"] for gate in session.report["gates"]}


@each_mode
def test_what_is_not_needed_is_not_run_and_reported_as_not_run(easy: Project, workers: int) -> None:
    args = easy.options(
        f"-n{workers}", STOP, "--osmosis-gate=mean >= 0.25", "--osmosis-gate=min >= -1", "-rs",
        "data.jsonl", "test_unit.py", "--junitxml=out.xml",
    )  # fmt: skip
    session = easy.plain(*args)
    report = session.report
    assert session.ret == 0
    assert verdicts(session) == {"mean >= 0.25": "passed", "min >= -1": "passed"}
    ran = report["summary"]["total_runs"]
    assert 5 <= ran <= 5 + 2 * max(workers, 0)
    assert easy.endpoint.requests == ran
    assert report["saved"] == {
        "runs": 20 - ran, "of": 20, "tokens": 15.0 * (20 - ran), "cost_usd": None,
    }  # fmt: skip
    assert report["summary"]["complete"] is False
    assert session.outcomes["passed"] == ran + 1  # the test beside it as well
    assert session.outcomes["skipped"] == 20 - ran
    assert f"SKIPPED [{20 - ran}] data.jsonl:0: not run: every gate is decided" in session.lines
    assert len(session.junit.findall(".//testcase/skipped")) == 20 - ran
    summary = "\n".join(session.section("osmosis summary"))
    assert "stopped: every gate is decided" in summary
    assert f"{20 - ran} of 20 runs ({(20 - ran) / 20:.0%}) did not have to be run" in summary


@pytest.mark.slow
def test_the_verdicts_are_those_of_a_full_run(project: Project) -> None:
    draw = random.Random(7)
    for _ in range(4):
        ease, gates = draw.choice([0.2, 0.8, 1.0]), ["pass@2 >= 0.5", "mean < 0.9", "scored == 1"]
        right = {(row, seed): draw.random() < ease for row in range(8) for seed in range(2)}
        project.endpoint.answers = lambda ask, right=right: (
            ask.row if right[int(ask.row), ask.body["seed"]] else "no"
        )
        project.rows(*map(str, range(8)))
        options = [*(f"--osmosis-gate={gate}" for gate in gates), "--osmosis-fresh"]
        full = project.run(*options, "--osmosis-seed=0", n="2")
        decided = verdicts(full)
        stopped = project.run(*options, "--osmosis-seed=0", STOP, n="2")
        assert verdicts(stopped) == decided
        assert stopped.ret == full.ret


IDLE = """
from osmosis_ai.rollout import RolloutAgentLoop


class Idle(RolloutAgentLoop):
    name = "idle"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        told = ctx.request.metadata
        answer = f"{told['row_index']} {told['run_index']}"
        return ctx.complete([*ctx.request.messages, {"role": "assistant", "content": answer}])


agent_loop = Idle()
"""
TABLE = """
import json
from pathlib import Path

scores = json.loads(Path("scores.json").read_text())


def {name}(solution_str):
    return scores[solution_str].get("{module}:{name}")
"""


class Sessions:
    """Whole sessions of random suites, with an agent that asks nobody and a table of scores."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.write("idle.py", IDLE)
        for function in FUNCTIONS:
            module, _, name = function.partition(":")
            project.write(f"{module}.py", TABLE.format(module=module, name=name))

    def of(self, suite: Suite, *more: str, workers: int = 0) -> Session:
        """A session in which every run of the suite gives what it is to give."""
        self.project.rows(
            *({"user_prompt": str(row), "kind": kind} for row, kind in enumerate(suite.kinds))
        )
        scores = {f"{row} {run}": told.scores for (row, run), told in suite.runs.items()}
        self.project.write("scores.json", json.dumps(scores))
        return self.project.run(
            "--osmosis-no-journal", "--osmosis-eval-fn=b:g", *more,
            agent="idle:agent_loop", eval_fn="a:f", n=str(suite.n), workers=workers,
        )  # fmt: skip


@pytest.mark.slow
def test_whole_sessions_of_random_suites_have_the_verdicts_of_full_ones(project: Project) -> None:
    sessions, ran, total, seen = Sessions(project), 0, 0, set()
    for draw, suite in suites(14, seed=3):
        options = ["--osmosis-confidence=0.9"] if draw.random() < 0.3 else []
        if against := draw.random() < 0.3:
            other = Suite(draw, rows=suite.rows, n=suite.n)
            other.kinds = suite.kinds
            sessions.of(other)
            (project.path / "out.json").rename(project.path / "old.json")
            options.append("--osmosis-baseline=old.json")
        texts = {random_gate(draw, suite.n, baseline=against, measured=False).text: 0
                 for _ in range(draw.randint(1, 3))}  # fmt: skip
        texts = [text for text in texts if "x" not in text or "x" in suite.kinds]
        options += [f"--osmosis-gate={text}" for text in texts or ["errors == 0"]]
        full = sessions.of(suite, *options)
        decided, runs = verdicts(full), len(full.runs)
        stopped = sessions.of(suite, *options, STOP)
        assert (stopped.ret, verdicts(stopped)) == (full.ret, decided), options
        seen.update(decided.values())
        total, ran = total + runs, ran + len(stopped.runs)
    print(f"saved {total - ran} of {total} runs ({(total - ran) / total:.0%})")
    assert ran < 0.9 * total
    assert seen == {"passed", "failed", "inconclusive"}


def test_a_gate_that_is_never_settled_early_lets_all_run(easy: Project) -> None:
    session = easy.run(STOP, "--osmosis-gate=mean == 1")
    assert (session.ret, len(session.runs), session.report["saved"]) == (0, 20, None)


@pytest.mark.slow
def test_extending_without_it_runs_what_was_left_out(easy: Project) -> None:
    gate = "--osmosis-gate=mean >= 0.25"
    assert len(easy.run(STOP, gate).runs) == 5
    session = easy.run(gate, "--osmosis-extend")
    assert len(session.runs) == 20
    assert easy.endpoint.requests == 20


def test_it_needs_a_gate(easy: Project) -> None:
    session = easy.run(STOP)
    assert session.ret == 4
    assert "--osmosis-stop-when-decided needs a gate that can be decided" in session.mistake
