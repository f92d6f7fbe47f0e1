"""Random suites and gates: what stopping early is held against."""

from __future__ import annotations

import random
from dataclasses import replace

from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.features.early_stopping.stopping import SuiteGates
from tests.support.score_tables import empty_table, run_of

FUNCTIONS = ("a:f", "b:g")


class Suite:
    """A random suite with everything that its runs will give, and a random order of them."""

    def __init__(self, draw: random.Random, *, rows: int, n: int, scale=(0.0, 0.5, 1.0)) -> None:
        self.n, self.rows = n, rows
        flaky = draw.choice([0.0, 0.02, 0.2])
        ease = draw.choice([0.2, 0.5, 0.9, 1.0])
        self.runs = {
            (row, run): run_of(row, run, **self._run(draw, flaky, ease, scale))
            for row in range(rows)
            for run in range(n)
        }
        self.order = draw.sample(sorted(self.runs), len(self.runs))

    def _run(self, draw, flaky, ease, scale):
        if draw.random() < flaky:
            return {"scores": {}, "duration_ms": draw.choice([0, 30_000])}
        high = draw.random() < ease
        return {
            "scores": {
                "a:f": scale[-1] if high else draw.choice(scale),
                "b:g": None if draw.random() < flaky else draw.choice(scale),
            },
            "error_type": None,
            "duration_ms": round(1000 * draw.expovariate(0.2)),
            "tokens": draw.randint(10, 500),
            "cost_usd": draw.choice([0.01, 0.02]),
        }

    def empty(self):
        return empty_table(self.rows, self.n, names=FUNCTIONS)

    def after(self, runs):
        """The table after so many runs."""
        table = self.empty()
        table.record(self.runs[key] for key in self.order[:runs])
        return table

    def full(self):
        return self.after(len(self.runs))

    def until_decided(self, gates):
        followed = SuiteGates(gates, self.empty())
        for key in self.order:
            if followed.are_settled():
                break
            followed.add(self.runs[key])
        return self.after(len(self.runs) - followed.left), followed


def random_gate(draw: random.Random, n: int):
    """A gate on anything."""
    k = draw.randint(1, n)
    metrics = [
        "mean[f]", "mean[g]", "min[f]", f"pass@{k}[f]", f"pass^{k}[g]", f"pass@{n}[g]",
        "rows@0[g]", "scored[f]", "errors", "errors[g]", "each row[f]", "tokens", "cost_usd",
        "p95_duration_s",
    ]  # fmt: skip
    metric = draw.choice(metrics)
    scale = {"rows@0[g]": 20, "errors": 30, "errors[g]": 30, "tokens": 50_000, "cost_usd": 2,
             "p95_duration_s": 40}.get(metric, 1)  # fmt: skip
    threshold = round(scale * draw.choice([0, 0.05, 0.3, 0.5, 0.7, 0.9, 0.95, 1]), 3)
    operator = draw.choice([">=", ">"] + ["<=", "<", "=="] * (metric != "each row[f]"))
    gate = parse_gate(f"{metric} >= 0.5")
    text = f"{metric} {operator} {threshold}"  # also what nothing passes
    return replace(gate, text=text, operator=operator, threshold=threshold)


def suites(count: int, seed: int):
    """So many suites, each with what draws further things for it."""
    draw = random.Random(seed)
    for _ in range(count):
        scale = draw.choice([(0.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.3, 1.0)])
        yield draw, Suite(draw, rows=draw.randint(1, 25), n=draw.randint(1, 5), scale=scale)


def outcomes(gates, tally, **settings):
    """The verdicts' outcomes."""
    return [evaluate(gate, tally, **settings).outcome for gate in gates]
