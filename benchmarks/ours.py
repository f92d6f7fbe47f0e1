"""The same work as an evaluation with this project: one call a rollout, one eval function.

Writes a small project into a folder and tells the command line of its evaluation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

AGENT = '''
import sys
import time

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


class Idle(Agent):
    """Asks nobody."""

    async def run(self, ctx):
        answer = {"role": "assistant", "content": "42"}
        return ctx.complete([*ctx.request.messages, answer], reward=1.0)


class Blocking(Idle):
    """Waits as a synchronous client does: the event loop stands still meanwhile."""

    async def run(self, ctx):
        time.sleep(0.1)
        return await super().run(ctx)


agent, idle, blocking = Agent(), Idle(), Blocking()
took_s = []
session = None


async def chat(ctx):
    """Asks by `ctx.chat`."""
    began = time.perf_counter()
    answer = await ctx.chat(ctx.request.messages)
    took_s.append(time.perf_counter() - began)
    return ctx.complete([*ctx.request.messages, answer.message])


async def bridged(messages, model, base_url, api_key):
    """Asks by a light client of its own, over the bridge."""
    return await posted(base_url, api_key, {"model": model, "messages": messages})


async def unbridged(messages, model, base_url, api_key):
    """Does the same without the bridge: the endpoint itself is asked."""
    named = "--osmosis-base-url="
    endpoint = next(each for each in sys.argv if each.startswith(named))
    body = {"model": model, "messages": messages}
    return await posted(endpoint.removeprefix(named), api_key, body)


async def posted(base_url, api_key, body):
    global session
    if session is None:
        import aiohttp

        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    headers = {"Authorization": f"Bearer {api_key}"}
    began = time.perf_counter()
    url = f"{base_url}/chat/completions"
    async with session.post(url, json=body, headers=headers) as reply:
        answer = await reply.json()
    took_s.append(time.perf_counter() - began)
    return answer["choices"][0]["message"]


def exact(solution_str, ground_truth, extra_info):
    return 1.0 if solution_str == ground_truth else 0.0
'''


class Project:
    """A folder with an agent, an eval function and rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bench_agent.py").write_text(AGENT)
        (folder / "pytest.ini").write_text("[pytest]\n")

    def rows(self, n: int) -> Path:
        """A data file of `n` rows."""
        path = self.folder / f"rows-{n}.jsonl"
        if not path.exists():
            with path.open("w") as file:
                file.writelines(json.dumps(_row(number)) + "\n" for number in range(n))
        return path

    def command(
        self,
        base_url: str,
        *,
        n: int,
        in_flight: int,
        processes: int | None,
        agent: str = "agent",
        eval_fn: str | None = "exact",
        more: tuple[str, ...] = (),
    ) -> list[str]:
        """The command line; `processes` None leaves the number of workers to the plugin."""
        line = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest"),
            f"--osmosis-agent=bench_agent:{agent}",
            f"--osmosis-data={self.rows(n).name}",
            "--osmosis-model=bench",
            f"--osmosis-base-url={base_url}",
            f"--osmosis-batch-size={in_flight}",
        ]
        if eval_fn is not None:
            line.append(f"--osmosis-eval-fn=bench_agent:{eval_fn}")
        if processes is not None:
            line.append(f"-n{processes}")
        return [*line, *more]


def _row(number: int) -> dict[str, str]:
    return {
        "system_prompt": "Answer with a number.",
        "user_prompt": f"What is {number} x 7?",
        "ground_truth": "42",
    }
