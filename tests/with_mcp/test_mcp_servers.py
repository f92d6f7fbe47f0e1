"""`--mcp` with the MCP SDK: a project of tools, without an agent, from the command line.

The SDK is in the environment of `tox -e mcp` alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = """
from server import mcp
from tools import *

if __name__ == "__main__":
    mcp.run(transport="streamable-http")
"""
SERVER = """
try:
    from mcp.server.mcpserver import MCPServer as Server
except ModuleNotFoundError:
    from mcp.server.fastmcp import FastMCP as Server

mcp = Server("tools")
"""
TOOLS = '''
from server import mcp

@mcp.tool()
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b

@mcp.tool()
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b
'''
REWARDS = """
def right(solution_str, ground_truth, extra_info):
    return 1.0 if ground_truth in solution_str else 0.0
"""
ROWS = [
    {"system_prompt": "Use tools.", "user_prompt": "What is 2 plus 40?", "ground_truth": "42"},
    {"system_prompt": "Use tools.", "user_prompt": "Divide 144 by 12.", "ground_truth": "12"},
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in {
        "mcp/main.py": MAIN,
        "mcp/server/__init__.py": SERVER,
        "mcp/tools/__init__.py": TOOLS,
        "rewards.py": REWARDS,
        "data.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def osmosis(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "osmosis_cli", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_the_tools_of_a_server_are_called(project: Path):
    done = osmosis(
        project, "test", "--mcp", "./mcp", "-d", "data.jsonl", "--model", "embedded/perfect",
        "-o", "results.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    results = json.loads((project / "results.json").read_text())["results"]
    assert [(one["tool_calls"], one["answer"][:17]) for one in results] == [
        (1, "The result is 42."),
        (1, "The result is 12."),
    ]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_an_evaluation_scores_what_they_lead_to(project: Path, workers: str):
    done = osmosis(
        project, "eval", "--mcp", "mcp", "-d", "data.jsonl", "--model", "embedded/perfect",
        "--eval-fn", "rewards:right", "--n", "2", "--batch-size", "4", "--fresh",
        "-o", f"report{workers}.json", "--", workers,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((project / f"report{workers}.json").read_text())
    assert report["summary"]["eval_fns"]["rewards:right"]["mean"] == 1.0


def test_the_tools_are_shown(project: Path):
    done = osmosis(project, "validate", "--mcp", "mcp", "--verbose")
    assert done.returncode == 0, done.stderr
    assert "  add(a, b)  Add two numbers." in done.stdout


def test_a_failing_tool_is_shown_to_the_model(project: Path):
    folder = project / "failing"
    folder.mkdir()
    text = SERVER + TOOLS.replace("from server import mcp", "").replace("a / b", "a / 0")
    (folder / "main.py").write_text(text)
    done = osmosis(
        project, "test", "--mcp", "failing", "-d", "data.jsonl", "--model", "embedded/perfect",
        "--rows", "1", "--debug",
    )  # fmt: skip
    said = "tool       Error: Error executing tool divide"
    assert said in done.stdout, done.stdout + done.stderr
