"""A workspace, its rollout, configs and datasets in the shapes that osmosis-ai 0.3 documents.

Each goes through every command: validate, check, preview, eval, dataset upload, submit.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import Osmosis
from tests.support.platform_server import PlatformServer
from tests.support.pushed_workspace import commit, git, make_workspace

pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
MAIN = "rollouts/multiply-local/main.py"
ROLLOUT = {
    "main.py": """
import os

import uvicorn
from multiply_rollout.grader import MultiplyGrader, multiply_grader_config
from multiply_rollout.workflow import MultiplyWorkflow, multiply_workflow_config

from osmosis_ai.rollout.backend.local import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server


def main() -> None:
    backend = LocalBackend(
        workflow=MultiplyWorkflow,
        workflow_config=multiply_workflow_config,
        grader=MultiplyGrader,
        grader_config=multiply_grader_config,
    )
    app = create_rollout_server(backend=backend)
    uvicorn.run(app, host="0.0.0.0", port=int(os.environ.get("_OSMOSIS_ROLLOUT_PORT", "8000")))


if __name__ == "__main__":
    main()
""",
    "multiply_rollout/workflow.py": """
from typing import Any

from openai import AsyncOpenAI

from osmosis_ai.rollout.agent_workflow import AgentWorkflow
from osmosis_ai.rollout.context import AgentWorkflowContext, get_rollout_context
from osmosis_ai.rollout.types import AgentWorkflowConfig, Messages


class MultiplyConfig(AgentWorkflowConfig):
    name: str = "MultiplyWorkflow"
    description: str | None = "Multiplies two numbers"
    settings: Any


multiply_workflow_config = MultiplyConfig(settings={"temperature": 0.0})


class MultiplyWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Messages:
        prompt = list(ctx.prompt)
        if "left" in ctx.metadata:
            task = ctx.metadata
            question = f"What is {task['left']} times {task['right']}?"
            prompt.append({"role": "user", "content": question})
        rollout = get_rollout_context()
        async with AsyncOpenAI(
            base_url=rollout.chat_completions_url, api_key=rollout.api_key
        ) as client:
            reply = await client.chat.completions.create(
                model="default", messages=prompt, **ctx.config.settings
            )
        return [*prompt, reply.choices[0].message.model_dump()]
""",
    "multiply_rollout/grader.py": """
from multiply_rollout.utils import extract_solution
from osmosis_ai.rollout.context import GraderContext
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types import GraderConfig

multiply_grader_config = GraderConfig(name="MultiplyGrader", description=None)


class MultiplyGrader(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        if ctx.sample is None:
            raise ValueError("nothing to grade")
        wanted = ctx.metadata.get("product", ctx.label)
        found = extract_solution(ctx.sample.messages[-1].get("content", ""))
        ctx.set_reward(1.0 if found is not None and float(found) == float(wanted) else 0.0)
""",
    "multiply_rollout/utils.py": """
import re


def extract_solution(solution_str: str) -> str | None:
    solution = re.search(r"####\\s*([-+]?\\d*\\.?\\d+)", solution_str)
    return None if solution is None else solution.group(1)
""",
    "pyproject.toml": """
[project]
name = "multiply-local"
version = "0.1.0"
requires-python = ">=3.10"
dependencies = ["osmosis-ai[server]>=0.2.21", "openai"]

[build-system]
requires = ["setuptools>=61.0"]
build-backend = "setuptools.build_meta"
""",
}
EVAL = """
# Run locally after copying: osmosis eval run configs/eval/<name>.toml
[experiment]
rollout = "multiply-local"             # Rollout name
entrypoint = "main.py"                 # Entrypoint file name inside rollouts/<rollout>/
model_path = "embedded/perfect"
dataset = "{dataset}"
# branch = "my-feature"                # Pin to a branch (default branch if omitted)
# commit_sha =                         # Optional pinned pushed commit

[evaluation]
# limit = 200
# n = 1
pass_threshold = 1.0

# [env]
# LOG_LEVEL = "INFO"

[secrets]
required = []
"""
TRAINING = """
[experiment]
rollout = "multiply-local"
entrypoint = "main.py"
model_path = "Qwen/Qwen3.6-35B-A3B"
dataset = "prompts"

[training]
# lr = 1e-6

[sampling]
# rollout_temperature = 1.0

[checkpoints]
# eval_interval = 10
"""
FACTORS = ((2, 3, 6), (4, 5, 20), (7, 8, 56), (9, 9, 80))
"""Two numbers, and what the row says that they make: the last is wrong on purpose."""
RIGHT = 3 / 4
SYSTEM = "You multiply. Write the answer on a line of its own, behind ####."
PROMPTS = [
    {"user_prompt": f"What is {a} times {b}?", "ground_truth": str(c)} for a, b, c in FACTORS
]
TASKS = [{"left": a, "right": b, "product": c} for a, b, c in FACTORS]


def json_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


DATASETS: dict[str, bytes] = {
    "prompts.jsonl": json_lines([{"system_prompt": SYSTEM, **row} for row in PROMPTS]),
    "columns.parquet": parquet([{"system_prompt": SYSTEM, **row} for row in PROMPTS]),
    "no_system.csv": csv_lines(PROMPTS),
    "tasks.jsonl": json_lines([{"metadata": task} for task in TASKS]),
    "task_texts.csv": csv_lines([{"metadata": json.dumps(task)} for task in TASKS]),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        root = make_workspace(tmp_path_factory.mktemp("upstream"), patch)
        files: dict[str, bytes] = {f"data/{name}": rows for name, rows in DATASETS.items()}
        for name, text in ROLLOUT.items():
            files[f"rollouts/multiply-local/{name}"] = text.encode()
        for name in DATASETS:
            stem = Path(name).stem
            files[f"configs/eval/{stem}.toml"] = EVAL.format(dataset=stem).encode()
        files["configs/training/multiply.toml"] = TRAINING.encode()
        for place, content in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_bytes(content)
        commit(root)
        git(root, "push", "--quiet", "origin", "main")
        yield root


@pytest.fixture
def osmosis(
    osmosis: Osmosis,
    workspace: Path,
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Osmosis:
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return osmosis.logged_in(platform_server)


@pytest.mark.slow
def test_its_rollout_and_its_configs_are_valid(osmosis: Osmosis):
    assert osmosis.document("validate", "-m", MAIN) == {
        "module": MAIN,
        "valid": True,
        "name": "MultiplyWorkflow",
        "grader": "MultiplyGrader",
    }
    for name in DATASETS:
        osmosis.out("eval", "check", f"configs/eval/{Path(name).stem}.toml")
    osmosis.out("train", "check", "configs/training/multiply.toml")


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_is_right_by_every_command(osmosis: Osmosis, workspace: Path, name: str):
    stem = Path(name).stem
    rows = osmosis.document("preview", f"data/{name}")["rows"]
    tasks = [row.get("metadata") for row in rows]
    assert tasks == (TASKS if "task" in stem else [None] * len(TASKS))

    config, report = f"configs/eval/{stem}.toml", workspace / f"{stem}.json"
    command = [sys.executable, "-m", "osmosis_cli", "eval", config, "-o", str(report)]
    command += ["--", "-n", "0"]
    subprocess.run(command, cwd=workspace, check=False, capture_output=True, timeout=120)
    [summary] = json.loads(report.read_text())["summary"]["eval_fns"].values()
    assert summary["mean"] == RIGHT

    assert "uploaded" in osmosis("dataset", "upload", f"data/{name}")[1]
    status, out, err = osmosis("eval", "submit", config, "--yes", "--json")
    assert status == 0, err
    assert json.loads(out)["eval_run"]["name"]
    if name == "prompts.jsonl":
        submitted = osmosis("train", "submit", "configs/training/multiply.toml", "--yes", "--json")
        assert submitted[0] == 0, submitted[2]
