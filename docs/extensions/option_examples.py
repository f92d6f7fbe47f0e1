"""What the page of options says of each group: the guide, and a command line to begin with.

Imports nothing of Sphinx, so that a test can run the examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Introduction:
    """What stands above the options of a group."""

    guides: str
    """Links, as Markdown."""
    example: str = ""
    """Options of an example, "" for none; the rest of the command line is `SUITE`."""


SUITE = (
    "pytest --osmosis-agent server:agent_loop --osmosis-data=test_data.jsonl \\\n"
    "       --eval-fn rewards:compute_reward --osmosis-model my-model \\\n"
    "       --osmosis-base-url http://localhost:8000/v1"
)

INTRODUCTIONS: Mapping[str, Introduction] = {
    "what is evaluated": Introduction(
        "[Evaluate an agent](../guides/evaluate.md), [Prepare a dataset](../guides/datasets.md)",
        "--n 5 --osmosis-sample 10% --pass-threshold 0.5",
    ),
    "the model": Introduction(
        "[The model](../guides/evaluate.md#the-model), [Security](../security.md)",
        "--osmosis-api-key-env MY_KEY --osmosis-price-per-mtok 0.25,2.00",
    ),
    "sampling": Introduction(
        "[The model](../guides/evaluate.md#the-model)",
        "--osmosis-temperature 0.7 --osmosis-seed 1 --n 5",
    ),
    "limits": Introduction(
        "[Plan what an evaluation costs](../guides/costs.md), [Performance](../performance.md)",
        "--batch-size 32 --osmosis-max-turns 20 --osmosis-max-time 1800",
    ),
    "a cluster": Introduction("[Evaluate on a Ray cluster](../guides/ray.md)"),
    "gates": Introduction(
        "[Decide with gates](../guides/gates.md)",
        '--n 5 --osmosis-gate "pass@3 >= 0.9" --osmosis-gate "errors == 0"',
    ),
    "the baseline": Introduction(
        "[Compare with a baseline](../guides/baselines.md)",
        '--osmosis-baseline=last --osmosis-gate "mean - baseline >= -0.02"',
    ),
    "reports": Introduction(
        "[Reports](../guides/reports.md)",
        "--osmosis-output=results.json --osmosis-html=report.html",
    ),
    "resuming": Introduction(
        "[Interrupt, resume, re-score](../guides/resume.md)",
        '--osmosis-fresh --osmosis-inputs="*.jsonl"',
    ),
    "recorded calls": Introduction(
        "[Record model calls, and replay them](../guides/replay.md)",
        "--osmosis-record=recorded",
    ),
}


def introduction(title: str) -> str:
    """Return the Markdown above the options of a group; "" for a group without one."""
    found = INTRODUCTIONS.get(title)
    if found is None:
        return ""
    if not found.example:
        return f"{found.guides}\n"
    return f"{found.guides}\n\n```sh\n{SUITE} \\\n       {found.example}\n```\n"
