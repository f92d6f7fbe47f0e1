"""A rollout as workspaces have them, for an agent library that one environment alone installs.

`evaluated` runs it once, as its own project, on the embedded endpoint: its `main.py` serves a
workflow when it is started, and is evaluated when it is named. What it connects to is noted.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from osmosis_ai.bridge import Bridge
from osmosis_ai.embedded import start_embedded
from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.rollout.context import RolloutContext
from tests.pages.blocks import ROOT, blocks

T = TypeVar("T")

GUARD = """
import sys
from pathlib import Path

HERE = ("127.0.0.1", "::1", "localhost", None, b"localhost")

def note(event, args):
    host = None
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    if host not in HERE:
        with Path(__file__).with_name("elsewhere.txt").open("a") as file:
            file.write(f"{event} {host}\\n")

sys.addaudithook(note)
"""
GRADER = """
import re
from osmosis_ai.rollout.context import GraderContext
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types import GraderConfig

grader_config = GraderConfig(name="right")

class Right(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        content = ctx.sample.messages[-1]["content"]
        said = content if isinstance(content, str) else "".join(part["text"] for part in content)
        found = re.findall(r"####\\s*(-?[\\d.]+)", said)
        ctx.set_reward(1.0 if found and float(found[-1]) == float(ctx.label) else 0.0)
"""
MAIN = """
import guard
import os

import uvicorn

from multiply.grader import Right, grader_config
from multiply.workflow import Multiply, workflow_config
from osmosis_ai.rollout.backend.local import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server

def main() -> None:
    backend = LocalBackend(
        workflow=Multiply,
        workflow_config=workflow_config,
        grader=Right,
        grader_config=grader_config,
    )
    app = create_rollout_server(backend=backend)
    uvicorn.run(app, host="0.0.0.0", port=int(os.environ.get("_OSMOSIS_ROLLOUT_PORT", "8000")))

if __name__ == "__main__":
    main()
"""
SYSTEM = "Use tools. Answer with the number after ####."
ROWS = [
    {"system_prompt": SYSTEM, "user_prompt": "What is 6 times 7?", "ground_truth": "42"},
    {"system_prompt": SYSTEM, "user_prompt": "What is 12 times 5?", "ground_truth": "60"},
]
QUIET = {
    "NO_COLOR": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    # Nothing listens there: a call that took the proxy would fail.
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a session left behind."""

    status: int
    text: str
    report: dict[str, Any]
    conversations: list[dict[str, Any]]
    elsewhere: str
    """What was connected to, or looked up, that is not this machine."""


def evaluated(folder: Path, workflow: str) -> Evaluated:
    """Evaluate the rollout with this `multiply/workflow.py`, two runs a row."""
    files = {"main.py": MAIN, "multiply/grader.py": GRADER, "multiply/workflow.py": workflow}
    return _session(folder, files)


def documented(folder: Path, library: str) -> Evaluated:
    """Evaluate the guide's example for a library, as it stands, with a grader."""
    page = ROOT / "docs" / "guides" / "workflows.md"
    [example] = [
        block.text
        for block in blocks(page)
        if block.text.startswith("# pip install ") and library in block.text.splitlines()[0]
    ]
    return _session(folder, {"main.py": f"import guard\n{example}\n{GRADER}"}, "--", "-n0")


def _session(folder: Path, files: Mapping[str, str], *more: str) -> Evaluated:
    rollout = folder / "rollouts" / "multiply"
    (rollout / "multiply").mkdir(parents=True)
    for name, text in {"guard.py": GUARD, **files}.items():
        (rollout / name).write_text(text)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "osmosis_cli", "eval", "-m", "rollouts/multiply/main.py"),
            *("-d", "rows.jsonl", "--model", "embedded/perfect", "--n", "2"),
            *("--batch-size", "4", "-o", "report.json", *more),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**kept, **QUIET},
    )
    text = done.stdout + done.stderr
    assert (folder / "report.json").exists(), text
    elsewhere = rollout / "elsewhere.txt"
    return Evaluated(
        status=done.returncode,
        text=text,
        report=json.loads((folder / "report.json").read_text()),
        conversations=[
            json.loads(line)
            for line in (folder / "report.trajectories.jsonl").read_text().splitlines()
        ],
        elsewhere=elsewhere.read_text() if elsewhere.exists() else "",
    )


def check(found: Evaluated) -> None:
    """Check what every library's rollout must give: rewards, messages, tool calls, usage."""
    assert found.status == 0, found.text
    assert found.elsewhere == ""
    assert found.report["summary"]["eval_fns"]["reward"]["mean"] == 1.0
    runs = [run for row in found.report["rows"] for run in row["runs"]]
    assert len(runs) == len(found.conversations) == 4
    for run, kept in zip(runs, found.conversations, strict=True):
        messages = kept["messages"]
        roles = [message["role"] for message in messages]
        assert roles == ["system", "user", "assistant", "tool", "assistant"]
        [call] = messages[2]["tool_calls"]
        assert call["function"]["name"] == "multiply"
        assert messages[3]["tool_call_id"] == call["id"]
        assert f"{float(kept['ground_truth'])}" in str(messages[3]["content"])
        assert sum(one["total_tokens"] for one in kept["calls"]) == run["tokens"] > 0
        assert len(kept["calls"]) == 2


def in_a_rollout(work: Callable[[RolloutContext], Awaitable[T]]) -> T:
    """What `work` gives in a rollout whose model, behind a bridge, is the embedded one."""
    with start_embedded("perfect") as endpoint, ExitStack() as closing:
        bridge = Bridge(
            lambda: OpenAIModel(
                model="embedded/perfect", base_url=endpoint.base_url, api_key=None, pool_size=4
            )
        )
        closing.callback(bridge.close)
        account = bridge.open_account()
        closing.callback(account.close)

        async def run() -> T:
            ambient = RolloutContext(
                rollout_id="r", chat_completions_url=account.url, api_key=account.key
            )
            with ambient:
                return await work(ambient)

        return asyncio.run(run())
