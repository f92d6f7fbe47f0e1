"""A small evaluation project in pytester's directory, and pytest sessions in it.

The agent asks once and is done, unless the row's prompt names something else that it should do;
`exact` compares its answer with the ground truth. The endpoint is that of `endpoints.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from .endpoints import Endpoint

AGENT = """
import asyncio

from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "asker"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        wish = messages[-1]["content"]
        if wish == "raise":
            return explode({"depth": 1})
        if wish == "give up":
            return ctx.error("there was no way to answer")
        if wish == "sleep":
            await asyncio.sleep(60)
        answer = await ctx.chat(messages, **ctx.request.completion_params)
        messages.append(answer.message)
        return ctx.complete(messages)


def explode(state):
    raise LookupError(f"no such drawer at {state}")


agent_loop = Agent()
"""

REWARDS = """
import asyncio


def exact(solution_str, ground_truth, extra_info):
    return 1.0 if solution_str == ground_truth else 0.0


def length(solution_str, ground_truth, extra_info):
    return len(solution_str) / 10


async def judge(messages, ground_truth, metadata):
    said = messages[-1]["content"]
    if said == "wait":
        await asyncio.sleep(60)
    return {"nothing": None, "text": "1.0", "nan": float("nan"), "right": 1.0, "half": 0.5}[said]
"""


KEPT = "agent.agent_loop-data-m"
"""The name of the usual evaluation, where it is kept."""
NO_NEIGHBOURS = "-p no:hypothesispytest -p no:anyio"
"""In PYTEST_ADDOPTS: leaves out plugins that are installed for the tests and load slowly."""


class Session:
    """What a pytest session left behind."""

    def __init__(self, ret: int, out: str, err: str, folder: Path) -> None:
        self.ret = ret
        self.out = out
        self.err = err
        self._folder = folder

    @property
    def outcomes(self) -> dict[str, int]:
        """Pytest's own count of outcomes."""
        return pytest.RunResult.parse_summary_nouns(self.lines)

    @property
    def lines(self) -> list[str]:
        """Standard output."""
        return self.out.splitlines()

    @property
    def mistake(self) -> str:
        """The usage error that ended the session, without `ERROR: `."""
        return self.err.partition("ERROR: ")[2].strip()

    @property
    def refusal(self) -> str:
        """Why no run has a score and what to do, as the summary says it, in one line; else ""."""
        lines = self.lines
        starts = [at for at, line in enumerate(lines) if line.startswith("ERROR: ")]
        below = lines[starts[-1] + 1 :] if starts else []
        rest = list(takewhile(lambda line: line.startswith("       "), below))
        return " ".join(
            map(str.strip, [*lines[starts[-1] : starts[-1] + 1], *rest] if starts else [])
        )

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report."""
        found: dict[str, Any] = json.loads((self._folder / "out.json").read_text())
        return found

    @property
    def runs(self) -> list[dict[str, Any]]:
        """All runs of the JSON report, in its order."""
        return [run for row in self.report["rows"] for run in row["runs"]]

    @property
    def junit(self) -> ElementTree.Element:
        """The JUnit file."""
        return ElementTree.parse(self._folder / "out.xml").getroot()

    def leaks(self, *texts: str) -> list[str]:
        """Those of some texts that were printed, or are in a file of the project."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        kept = [path.read_bytes() for path in files if path.suffix != ".pyc"]
        everything = [self.out.encode(), self.err.encode(), *kept]
        return [text for text in texts if any(text.encode() in one for one in everything)]

    def section(self, title: str) -> list[str]:
        """The lines below a title of pytest's, up to the next one."""
        lines = self.lines
        [start] = [at for at, line in enumerate(lines) if line.strip("=") == f" {title} "]
        ends = [at for at, line in enumerate(lines) if at > start and line.startswith("====")]
        return lines[start + 1 : ends[0]]


class Folder:
    """Agent, eval functions and rows, evaluated against an endpoint by processes."""

    def __init__(self, path: Path, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.path = path
        self.write("agent.py", AGENT)
        self.write("rewards.py", REWARDS)

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = int(path.stat().st_mtime) if path.exists() else 0
        path.write_text(text)
        # Python takes compiled code for that of a file of this size and second.
        if int(path.stat().st_mtime) <= before:
            os.utime(path, (before + 1, before + 1))
        return path

    def rows(self, *rows: str | Mapping[str, Any], name: str = "data.jsonl") -> None:
        """The dataset; a text is `user_prompt` and expected answer both."""
        self.write(name, "".join(json.dumps(_row(row)) + "\n" for row in rows))

    def options(self, *more: str, **replaced: str | None) -> list[str]:
        """The usual command line; a keyword replaces an option, or with None leaves it out."""
        usual: dict[str, str | None] = {
            "agent": "agent:agent_loop",
            "data": "data.jsonl",
            "eval_fn": "rewards:exact",
            "model": "m",
            "base_url": self.endpoint.base_url,
            "output": "out.json",
            **replaced,
        }
        given = [
            f"--osmosis-{name.replace('_', '-')}={value}"
            for name, value in usual.items()
            if value is not None
        ]
        return [*given, *more]

    def evaluate(self, *args: str) -> Session:
        """A session of exactly this command line, in a process of its own."""
        command = [sys.executable, "-m", "pytest", *args]
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)
        return Session(done.returncode, done.stdout, done.stderr, self.path)


class Project(Folder):
    """The same in pytester's directory, with sessions in this process too."""

    def __init__(self, pytester: pytest.Pytester, endpoint: Endpoint) -> None:
        super().__init__(pytester.path, endpoint)
        self.pytester = pytester

    def run(self, *more: str, workers: int = 0, **replaced: str | None) -> Session:
        """A session of the usual command line, in this process and `workers` others."""
        return self.plain(*self.options(f"-n{workers}", *more, **replaced))

    def plain(self, *args: str) -> Session:
        """A session of exactly this command line, in this process."""
        return self._left_by(self.pytester.runpytest_inprocess(*args))

    def apart(self, *args: str) -> Session:
        """The same in a process of its own."""
        return self._left_by(self.pytester.runpytest_subprocess(*args))

    def _left_by(self, result: pytest.RunResult) -> Session:
        out, err = "\n".join(result.outlines), "\n".join(result.errlines)
        return Session(int(result.ret), out, err, self.path)


def _row(row: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(row, str):
        row = {"user_prompt": row, "ground_truth": row}
    return {"system_prompt": "Answer.", **row}
