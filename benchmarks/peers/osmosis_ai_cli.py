"""osmosis-ai 0.2.14: its own command, `osmosis eval`, on an agent loop that asks once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import EXPECTED, SYSTEM, end, given, prompt

AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "asker"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        answer = await ctx.chat(messages, **ctx.request.completion_params)
        messages.append(answer.message)
        return ctx.complete(messages)


agent_loop = Agent()


def exact(solution_str, ground_truth, extra_info):
    return 1.0 if solution_str == ground_truth else 0.0
"""


def main() -> None:
    base_url, n, in_flight = given()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench_agent.py").write_text(AGENT)
        with (folder / "rows.jsonl").open("w") as file:
            for number in range(n):
                row = {"system_prompt": SYSTEM, "user_prompt": prompt(number)}
                file.write(json.dumps({**row, "ground_truth": EXPECTED}) + "\n")
        command = [str(Path(sys.executable).with_name("osmosis")), "eval", "--quiet"]
        command += ["-m", "bench_agent:agent_loop", "-d", "rows.jsonl", "-o", "out.json"]
        command += ["--eval-fn", "bench_agent:exact", "--model", "openai/bench"]
        command += ["--base-url", base_url, "--api-key", "not-needed"]
        command += ["--batch-size", str(in_flight)]
        env = {**os.environ, "PYTHONPATH": name}
        subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
        report = json.loads((folder / "out.json").read_text())
    runs = [run for row in report["rows"] for run in row["runs"]]
    end(sum(run["scores"].get("bench_agent:exact") == 1.0 for run in runs), n)


main()
