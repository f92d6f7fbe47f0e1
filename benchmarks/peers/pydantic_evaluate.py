"""pydantic-evals: a dataset of cases, a task that asks once, an evaluator by equality."""

from __future__ import annotations

import asyncio

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
from rows import EXPECTED, ask, client, end, given, prompt


async def main() -> None:
    base_url, n, in_flight = given()
    openai = client(base_url)

    async def task(question: str) -> str:
        return await ask(openai, question)

    dataset = Dataset(
        name="bench",
        cases=[
            Case(name=str(number), inputs=prompt(number), expected_output=EXPECTED)
            for number in range(n)
        ],
        evaluators=[EqualsExpected()],
    )
    report = await dataset.evaluate(task, max_concurrency=in_flight, progress=False)
    right = sum(all(found.value for found in case.assertions.values()) for case in report.cases)
    end(right, n)


asyncio.run(main())
