"""deepeval: test cases whose answers are asked for first, then `evaluate` with an exact metric."""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from rows import EXPECTED, ask, client, end, given, prompt


class Exact(BaseMetric):
    """1.0 for the expected answer."""

    threshold = 1.0
    async_mode = True

    def measure(self, test_case: LLMTestCase) -> float:
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Exact"


async def answers(base_url: str, n: int, in_flight: int) -> list[str]:
    openai, slots = client(base_url), asyncio.Semaphore(in_flight)

    async def one(number: int) -> str:
        async with slots:
            return await ask(openai, prompt(number))

    return await asyncio.gather(*(one(number) for number in range(n)))


def main() -> None:
    base_url, n, in_flight = given()
    found = asyncio.run(answers(base_url, n, in_flight))
    cases = [
        LLMTestCase(input=prompt(number), actual_output=answer, expected_output=EXPECTED)
        for number, answer in enumerate(found)
    ]
    result = evaluate(
        cases,
        [Exact()],
        async_config=AsyncConfig(run_async=True, max_concurrent=in_flight),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
    )
    end(sum(case.success for case in result.test_results), n)


main()
