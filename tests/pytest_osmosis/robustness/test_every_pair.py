"""Features that work alone work together: every pair of them in some session, none of it broken.

Each session ends with an exit status of the contract and without a traceback of ours; what it
reports and keeps reads back, and its runs have the scores that a plain session gives them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.reports.json_writer import document_of
from pytest_osmosis.reports.saved_report import read_saved
from pytest_osmosis.run_result import RunResult
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.replay import replay
from pytest_osmosis.suite_results import SuiteResult
from tests.support.endpoints import Ask
from tests.support.project import NO_NEIGHBOURS, Project, Session

FEATURES = (
    "candidates", "baseline", "gates", "workers", "killed", "replay", "marked", "-k", "--lf", "-x",
    "--collect-only", "report", "rescore", "extend", "shard",
)  # fmt: skip
REFUSED = {
    frozenset({"rescore", "extend"}): "contradict each other: give one of them",
    frozenset({"rescore", "marked"}): "it holds the runs of a test function, whose own asserts",
    frozenset({"extend", "-k"}): "uses the runs of whole evaluations, and -k selects a part of one",
    frozenset({"extend", "--lf"}): "uses the runs of whole evaluations, and --lf selects a part",
}
"""Pairs that are refused, and what is said of them."""
TIMES = 2
"""In how many sessions each pair is at least."""
STATUSES = {0, 1, 5, 8}
"""Passed, failed, nothing was run, a gate is inconclusive."""
State = tuple[str, bool]


def sessions() -> list[frozenset[str]]:
    """Return the sessions by the features that each has: greedily chosen, always the same."""
    draw, chosen = random.Random(1), list[frozenset[str]]()
    left = Counter(dict.fromkeys(wanted(), TIMES))
    while left:
        drawn = [_drawn(draw) for _ in range(200)]
        best = max(drawn, key=lambda each: len(left.keys() & pairs_of(each)))
        chosen.append(best)
        left = +(left - Counter(pairs_of(best)))
    return chosen


def wanted() -> Iterator[tuple[State, State]]:
    """Yield every pair of features, there or not, that is not refused."""
    for one, other in combinations(FEATURES, 2):
        for pair in [((one, a), (other, b)) for a in (True, False) for b in (True, False)]:
            if not is_refused(feature for feature, is_there in pair if is_there):
                yield pair


def _drawn(draw: random.Random) -> frozenset[str]:
    found: set[str] = set()
    for feature in draw.sample(FEATURES, len(FEATURES)):
        if draw.random() < 0.4 and not is_refused([*found, feature]):
            found.add(feature)
    return frozenset(found)


def is_refused(features: Iterable[str]) -> bool:
    given = set(features)
    return any(pair <= given for pair in REFUSED)


def pairs_of(features: frozenset[str]) -> set[tuple[State, State]]:
    """Return the pairs that a session is a test of; one that only lists is of nothing else."""
    pairs = set(combinations([(feature, feature in features) for feature in FEATURES], 2))
    listing = "--collect-only", True
    return {pair for pair in pairs if listing in pair} if "--collect-only" in features else pairs


AGENT = """
import asyncio
from pathlib import Path

from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "asker"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        row = ctx.request.metadata["row_index"]
        if row > 1 and Path("armed").exists():
            Path("reached").touch()
            await asyncio.sleep(600)
        answer = await ctx.chat(ctx.request.messages, **ctx.request.completion_params)
        return ctx.complete([*ctx.request.messages, answer.message])


agent_loop = Agent()
"""
MARKED = """
from pytest_osmosis import osmosis


@osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_it(rollout):
    assert rollout.text == rollout.ground_truth
"""
NAMES = ("a", "b", "wrong", "c", "other")


def answers(ask: Ask) -> str:
    """Wrong in a row, and the second model in one more."""
    return "no" if ask.row == "wrong" or (ask.row, ask.model) == ("other", "m2") else ask.row


def expected(run: RunResult) -> float:
    wrong = NAMES[run.row_index] == "wrong"
    return float(not (wrong or (NAMES[run.row_index], run.model) == ("other", "m2")))


class Scenario:
    """A session with some features, and the sessions that it needs to have been before."""

    def __init__(self, project: Project, features: frozenset[str]) -> None:
        self.project = project
        self.has = features.__contains__
        self.is_whole = features.isdisjoint(["-k", "--lf", "-x", "--collect-only"])
        """Whether it runs everything."""
        self.report = "out.json" if self.has("report") else None
        project.endpoint.answers = answers
        project.write("agent.py", AGENT)
        project.write("test_marked.py", MARKED)
        project.rows(*NAMES)

    def sessions(self) -> Iterator[Session]:
        """Yield the session, or those of both shards; what they need is run before."""
        apart = ["-n0", *self._evaluation(n=2), "--osmosis-no-journal"]
        if self.has("baseline"):
            self.project.plain(*apart, "--osmosis-output=base.json")
        if self.has("replay"):
            self.project.plain(*apart, "--osmosis-record=tape")
        for number in (1, 2) if self.has("shard") else (0,):
            yield self._session(number)
        if self.has("shard") and self.report and self.is_whole and not self.has("rescore"):
            self._merge()

    def _session(self, shard: int) -> Session:
        before = self._evaluation(n=1 if self.has("extend") else 2)
        if shard:
            before.append(f"--osmosis-shard={shard}/2")
            self.report = self.report and f"shard-{shard}.json"
        if self.has("replay"):
            before.append("--osmosis-replay=tape")
        workers = ["-n2", "--batch-size=4"] if self.has("workers") else ["-n0"]
        if self.has("killed"):
            self._kill(*before, *workers)
        elif self.has("rescore") or self.has("--lf"):
            self.project.plain("-n0", *before)
        if self.has("extend"):
            self.project.plain("-n0", *before)
            before += ["--osmosis-n=2", "--osmosis-extend"]
        if self.has("rescore"):
            kept = f"--osmosis-rescore={self._kept()[-1].name}"
            before = [kept, "--osmosis-extend"] if self.has("extend") else [kept]
        return self.project.plain(*before, *workers, *self._asked())

    def _evaluation(self, *, n: int) -> list[str]:
        models = ["--osmosis-model=m2"] if self.has("candidates") else []
        if self.has("marked"):
            usual = self.project.options(agent=None, data=None, eval_fn=None, output=None)
            return ["test_marked.py", *usual, *models, f"--osmosis-n={n}"]
        return [*self.project.options(output=None), *models, f"--osmosis-n={n}"]

    def _asked(self) -> Iterator[str]:
        yield from (word for word in ("--lf", "-x", "--collect-only") if self.has(word))
        if self.has("-k"):
            yield "-k row-1 or row-2"
        if self.has("baseline"):
            yield "--osmosis-baseline=base.json"
        if self.has("gates"):
            yield "--osmosis-gate=mean >= 0.7"
        if self.has("gates") and self.has("baseline"):
            yield "--osmosis-gate=mean - baseline >= -0.5"
        if self.report:
            yield f"--osmosis-output={self.report}"

    def _kill(self, *options: str) -> None:
        """Kill a session and its workers once a run of row 2 or a later one has begun."""
        armed, reached = (self.project.path / name for name in ("armed", "reached"))
        armed.touch()
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=self.project.path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTEST_ADDOPTS": NO_NEIGHBOURS},
        )
        while not reached.exists():
            assert process.poll() is None, "it has ended by itself"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        armed.unlink()
        reached.unlink()

    def _merge(self) -> None:
        names = [str(path) for path in self._reports()]
        more = [f"--baseline={self.project.path / 'base.json'}"] * self.has("baseline")
        whole = ["-o", str(self.project.path / "shard-whole.json")]
        done = CliRunner().invoke(cli, ["eval", "merge", *names, *more, *whole])
        assert done.exit_code in {0, 1, 8}, done.output
        assert isinstance(done.exception, SystemExit | None), done.exception

    def _kept(self) -> list[Path]:
        return sorted(run_directory.kept_in(self.project.path / ".osmosis" / "runs"))

    def _reports(self) -> list[Path]:
        found = [*self.project.path.glob("out.json"), *self.project.path.glob("shard-*.json")]
        return sorted(path for path in found if path.suffixes == [".json"])

    def check(self) -> None:
        """Read back what is reported and kept: all of it, with the scores of a plain session."""
        for path in self._reports():
            result = read_saved(path).result
            assert document_of(result) == json.loads(path.read_text())
            for suite in result.suites:
                self._check_runs(suite)
                mean = fmean(fmean(map(expected, row.runs)) for row in suite.rows)
                assert suite.functions[0].mean == pytest.approx(mean)
                assert suite.complete or not self.is_whole or self.has("killed")
        for folder in self._kept():
            self._check_runs(kept_suite(replay(folder)))  # none, where it was killed early

    def _check_runs(self, suite: SuiteResult) -> None:
        assert suite.errors == {}
        for run in suite.runs:
            assert list(run.scores.values()) in ([expected(run)], []), run
            assert run.passed == bool(expected(run)) or not run.scores


@pytest.mark.slow
@pytest.mark.parametrize("features", sessions(), ids=lambda each: ",".join(sorted(each)) or "plain")
def test_every_pair_of_features_works_together(project: Project, features: frozenset[str]):
    scenario = Scenario(project, features)
    is_stopped_by_xdist = {"-x", "workers"} <= features
    for session in scenario.sessions():
        said = session.out + session.err
        assert session.ret in STATUSES or (session.ret == 2 and is_stopped_by_xdist), said
        assert "INTERNALERROR" not in said and "Traceback" not in said, said
    scenario.check()


@pytest.mark.slow
@pytest.mark.parametrize("pair", REFUSED, ids=lambda each: ",".join(sorted(each)))
def test_what_does_not_go_together_is_refused(project: Project, pair: frozenset[str]):
    [session] = Scenario(project, pair).sessions()
    assert (session.ret, REFUSED[pair] in session.mistake) == (4, True), session.mistake


def test_the_sessions_have_every_pair():
    found = Counter(pair for features in sessions() for pair in pairs_of(features))
    assert [pair for pair in wanted() if found[pair] < TIMES] == []
    assert not any(map(is_refused, sessions()))
