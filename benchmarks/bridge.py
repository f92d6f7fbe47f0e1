"""What the bridge adds to a call: the same client, to the endpoint directly and through the bridge.

    python benchmarks/bridge.py [--in-flight 64] [--calls 6400] [--latency-s 0.1] [--rounds 3]

The endpoint is a process of its own with a constant latency; client and bridge share this process,
as a workflow and its bridge do. Rounds of both take turns, each client begins at its own moment.
Prints medians of a call in milliseconds, their difference, and processor time a call.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import dataclass, field

try:
    from .endpoint import EndpointProcess
except ImportError:  # run as a script
    from endpoint import EndpointProcess  # type: ignore[import-not-found, no-redef]

from osmosis_ai.bridge import Account, Bridge
from osmosis_ai.models.base import ChatModel
from osmosis_ai.models.openai import OpenAIModel

MESSAGES = [
    {"role": "system", "content": "Answer with a number."},
    {"role": "user", "content": "What is 6 x 7?"},
]
LIMIT_MS = 2.0
"""The most that the bridge may add to the median call."""


@dataclass
class Taken:
    """What calls of one kind took, round by round."""

    medians_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def show(self) -> str:
        """The medians of the rounds, with their ranges."""
        return f"{_spread(self.medians_ms, 2)} ms a call, {_spread(self.cpu_us, 0)} us CPU a call"


async def timed(models: list[ChatModel], calls: int, stagger_s: float) -> list[float]:
    """The durations of `calls` calls, in seconds, as many of them at once as there are clients."""
    numbers = iter(range(calls))
    took: list[float] = []

    async def client(place: int, model: ChatModel) -> None:
        await asyncio.sleep(stagger_s * place / len(models))
        for _ in numbers:
            started = time.perf_counter()
            await model.complete(MESSAGES)
            took.append(time.perf_counter() - started)

    await asyncio.gather(*(client(place, model) for place, model in enumerate(models)))
    return took


async def one_round(taken: Taken, models: list[ChatModel], given: argparse.Namespace) -> None:
    """A warm-up, and one measured round."""
    await timed(models, 2 * given.in_flight, given.latency_s)
    cpu_s = time.process_time()
    took = await timed(models, given.calls, given.latency_s)
    taken.cpu_us.append((time.process_time() - cpu_s) / given.calls * 1e6)
    taken.medians_ms.append(statistics.median(took) * 1000)


def clients(accounts: list[Account | None], base_url: str) -> list[ChatModel]:
    """A client for each rollout: of its account at the bridge, or of the endpoint itself."""
    return [
        OpenAIModel(
            model="m",
            base_url=base_url if account is None else account.url,
            api_key=None if account is None else account.key,
            pool_size=1,
        )
        for account in accounts
    ]


async def measure(base_url: str, bridge: Bridge, given: argparse.Namespace) -> int:
    """Prints the comparison; 1 when the bridge adds too much."""
    direct, bridged = Taken(), Taken()
    for _ in range(given.rounds):
        for taken in (direct, bridged):
            through = taken is bridged
            each = [bridge.open_account() if through else None for _ in range(given.in_flight)]
            models = clients(each, base_url)
            await one_round(taken, models, given)
            for model in models:
                await model.aclose()
    added = [b - a for a, b in zip(direct.medians_ms, bridged.medians_ms, strict=True)]
    cpu = [b - a for a, b in zip(direct.cpu_us, bridged.cpu_us, strict=True)]
    print(f"direct   {direct.show()}")
    print(f"bridge   {bridged.show()}")
    print(f"added    {_spread(added, 2)} ms a call, {_spread(cpu, 0)} us CPU a call")
    return 0 if statistics.median(added) < LIMIT_MS else 1


def _spread(values: list[float], digits: int) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--calls", type=int, default=6400)
    parser.add_argument("--latency-s", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with EndpointProcess(latency_s=given.latency_s) as endpoint:
        base_url = endpoint.base_url
        bridge = Bridge(
            lambda: OpenAIModel(
                model="m", base_url=base_url, api_key=None, pool_size=given.in_flight
            )
        )
        try:
            return asyncio.run(measure(base_url, bridge, given))
        finally:
            bridge.close()


if __name__ == "__main__":
    sys.exit(main())
