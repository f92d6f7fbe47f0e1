"""verifiers 0.1: a single-turn environment with one reward function."""

from __future__ import annotations

import asyncio
import os

import verifiers as vf
from datasets import Dataset
from rows import EXPECTED, SYSTEM, end, given, prompt
from verifiers.types import ClientConfig


def exact(completion: list[dict[str, str]], answer: str) -> float:
    return 1.0 if completion[-1]["content"] == answer else 0.0


async def main() -> None:
    base_url, n, in_flight = given()
    os.environ["BENCH_KEY"] = "not-needed"
    rows = [{"question": prompt(number), "answer": EXPECTED} for number in range(n)]
    environment = vf.SingleTurnEnv(
        eval_dataset=Dataset.from_list(rows), system_prompt=SYSTEM, rubric=vf.Rubric(funcs=[exact])
    )
    found = await environment.evaluate(
        client=ClientConfig(api_base_url=base_url, api_key_var="BENCH_KEY"),
        model="bench",
        num_examples=n,
        rollouts_per_example=1,
        max_concurrent=in_flight,
    )
    rewards = found["reward"] if "reward" in found else [out["reward"] for out in found["outputs"]]
    end(sum(reward == 1.0 for reward in rewards), n)


asyncio.run(main())
