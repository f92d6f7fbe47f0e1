"""A run that was submitted, and what executes it: children that only seem to run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmosis_executors.job import EvaluationJob, Job
from osmosis_platform.execution.execute import execute
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.services import Services
from pytest_osmosis.reports.json_models import Config, EvalFnSummary, Report, Row, Run, Summary
from tests.support.platform_server import PlatformServer
from tests.support.submitted_runs import log_of, run_of

SECRET = "sk-the-value-of-a-secret"


def report_of(answer: str, *, halted: str | None = None, name: str = "") -> Report:
    """A report of one row with two runs, of which one passed."""
    figures = {"mean": 0.5, "std": 0.7, "min": 0.0, "max": 1.0, "scored": 2, "missing": 0}
    runs = [
        Run(
            run_index=index, success=True, scores={"reward": score}, duration_ms=1, tokens=3,
            passed=score == 1.0, outcome=answer,
        )
        for index, score in enumerate((1.0, 0.0))
    ]  # fmt: skip
    summary = Summary(
        total_rows=1, total_runs=2, total_tokens=6, total_duration_ms=9, selected=2, total=2,
        eval_fns={"reward": EvalFnSummary(**figures, pass_at_1=0.5, pass_at_2=1.0)}, complete=True,
        incomplete_rows=0, errors={}, finish_reasons={}, unknown_tokens=0, retries=0,
        cost_usd=None, halted=halted,
    )  # fmt: skip
    config = Config(
        model="embedded", n_runs=2, pass_threshold=1.0, eval_fns=["reward"], agent="a", data="d",
        data_sha256="x", name=name, endpoint="e",
    )  # fmt: skip
    return Report(config=config, summary=summary, rows=[Row(row_index=0, runs=runs)])


@dataclass
class Ended:
    """A child that has ended, or goes on until it is stopped."""

    status: int | None
    on_wait: Callable[[], None] = lambda: None

    def wait(self, timeout_s: float) -> int | None:
        self.on_wait()
        return self.status

    def stop(self) -> None:
        self.status = 143 if self.status is None else self.status


@dataclass
class Children:
    """An executor whose children print and leave what a test says."""

    build: tuple[int, str] = (0, "")
    server: tuple[int | None, str] = (None, '{"url": "http://127.0.0.1:1"}\n')
    evaluation: tuple[int | None, str] = (0, "")
    report: Report | None = None
    on_wait: Callable[[], None] = lambda: None
    jobs: list[Job] = field(default_factory=list)
    started: list[Ended] = field(default_factory=list)

    def start(self, job: Job) -> Ended:
        self.jobs.append(job)
        self.started.append(self._start(job))
        return self.started[-1]

    def _start(self, job: Job) -> Ended:
        if job.words[0] == "uv" or "-I" in job.words:
            assert SECRET not in job.environment.values()
            job.output.write_text(self.build[1])
            if job.words[1] == "venv":
                Path(job.words[-1]).mkdir()
            return Ended(self.build[0])
        if "osmosis_executors.serve_rollout" in job.words:
            job.output.write_text(self.server[1])
            return Ended(self.server[0])
        status, printed = self.evaluation
        with job.output.open("a") as file:
            file.write(printed)
        if self.report is not None:
            text = json.dumps(self.report.model_dump(mode="python"))
            (job.folder.parent / "results/report.json").write_text(text)
        return Ended(status, self.on_wait)

    def evaluate(self, evaluation: EvaluationJob) -> Ended:
        assert evaluation.secrets == ["KEY"]
        return self.start(evaluation.job)


@dataclass
class Submitted:
    """A run that was submitted, its work tree made already, and what executes it."""

    platform: PlatformServer
    services: Services
    children: Children
    run_id: str
    run_folder: RunFolder

    def execute(self) -> Any:
        assert self.services.claims.take() == self.run_id
        execute(self.services, self.run_id)
        return run_of(self.platform, self.run_id)

    @property
    def log(self) -> str:
        return "\n".join(log_of(self.platform, self.run_id))
