"""inspect-ai: a task over samples, the `generate` solver, the `exact` scorer."""

from __future__ import annotations

import os
import tempfile

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate, system_message
from rows import EXPECTED, SYSTEM, end, given, prompt


def main() -> None:
    base_url, n, in_flight = given()
    os.environ["OPENAI_API_KEY"] = "not-needed"
    task = Task(
        dataset=MemoryDataset(
            [Sample(input=prompt(number), target=EXPECTED) for number in range(n)]
        ),
        solver=[system_message(SYSTEM), generate()],
        scorer=exact(),
    )
    with tempfile.TemporaryDirectory() as logs:
        [log] = eval(
            task,
            model="openai/bench",
            model_base_url=base_url,
            model_args={"responses_api": False},
            max_connections=in_flight,
            max_samples=in_flight,
            display="none",
            log_dir=logs,
        )
        scores = [sample.scores["exact"].value for sample in log.samples or []]
    end(scores.count("C"), n)


main()
