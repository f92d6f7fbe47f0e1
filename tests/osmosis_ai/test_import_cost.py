from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("litellm", "pydantic", "pyarrow", "numpy", "httpx", "aiohttp", "asyncio", "starlette")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


@pytest.mark.parametrize(
    "statement",
    ["import osmosis_ai", "import osmosis_ai.rollout", "from osmosis_ai import osmosis_reward"],
)
def test_a_cheap_import_loads_nothing_heavy(statement):
    assert modules_after(statement).isdisjoint(HEAVY)


def test_agents_can_be_imported_without_a_client_a_server_or_a_provider():
    statement = "from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, run_rollout"
    loaded = modules_after(statement)
    assert loaded.isdisjoint({"litellm", "httpx", "aiohttp", "starlette", "pyarrow", "numpy"})


def test_import_osmosis_ai_loads_nothing_but_itself():
    # Some 2 ms; with `typing` and what it brings it would be four times that.
    own = modules_after("import osmosis_ai") - modules_after("import importlib, warnings")
    assert own <= {"osmosis_ai", "__future__"}
