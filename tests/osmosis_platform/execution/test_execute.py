"""A run from its claim to its end, with children that only seem to run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import Evaluation, Job, JobLimits
from osmosis_platform.database.models import Workspace
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.environments.build import Environments
from osmosis_platform.environments.settings import BuildSettings
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.execute import KILLED, Services, execute
from osmosis_platform.execution.room import Room
from osmosis_platform.execution.scheduler import Scheduler
from pytest_osmosis.reports.json_models import Config, CoreRun, EvalFnSummary, Report, Row, Summary
from tests.platform_server import PlatformServer
from tests.submitted_runs import log_of, run_of

SECRET = "sk-the-value-of-a-secret"


def report_of(answer: str, *, halted: str | None = None) -> Report:
    """A report of one row with two runs, of which one passed."""
    figures = {"mean": 0.5, "std": 0.7, "min": 0.0, "max": 1.0, "scored": 2, "missing": 0}
    runs = [
        CoreRun(
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
        data_sha256="x", endpoint="e",
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
    question: tuple[int, str] = (0, "")
    evaluation: tuple[int | None, str] = (0, "")
    report: Report | None = None
    on_wait: Callable[[], None] = lambda: None
    jobs: list[Job] = field(default_factory=list)

    def start(self, job: Job) -> Ended:
        self.jobs.append(job)
        is_question = "osmosis_executors.question" in job.words
        if job.words[0] == "uv" or "-I" in job.words:
            assert SECRET not in job.environment.values()
            job.output.write_text(self.build[1])
            return Ended(self.build[0])
        status, printed = self.question if is_question else self.evaluation
        with job.output.open("a") as file:
            file.write(printed)
        if not is_question and self.report is not None:
            (job.folder.parent / "results/report.json").write_text(self.report.model_dump_json())
        return Ended(status, (lambda: None) if is_question else self.on_wait)

    def evaluate(self, evaluation: Evaluation) -> Ended:
        assert evaluation.options[0] == "-p"
        assert evaluation.secrets == ["KEY"]
        return self.start(evaluation.job)


@dataclass
class Submitted:
    """A run that was submitted, its work tree made already, and what executes it."""

    platform: PlatformServer
    services: Services
    children: Children
    run_id: str
    room: Room

    def execute(self) -> Any:
        assert self.services.claims.take() == self.run_id
        execute(self.services, self.run_id)
        return run_of(self.platform, self.run_id)

    @property
    def log(self) -> str:
        return "\n".join(log_of(self.platform, self.run_id))


@pytest.fixture
def submitted(platform: PlatformServer, claims: Claims, tmp_path: Path) -> Submitted:
    experiment = {
        "rollout": "my-rollout", "entrypoint": "main.py", "model_path": "openai/x",
        "dataset": "my-dataset",
    }  # fmt: skip
    submission = {
        "experiment_config": experiment,
        "env_config": {"LEVEL": "INFO"},
        "secrets": {"required": ["KEY"]},
    }
    platform.add_secret("KEY", value="of the workspace, not to be taken", scope="workspace")
    platform.add_secret("KEY", value=SECRET)
    run_id = platform.add_run(submission=submission)
    dataset_id = run_of(platform, run_id).dataset_id
    files = DatasetFiles(tmp_path, dataset_id, "jsonl")
    files.make()
    files.rows.touch()
    room = Room.of_run(tmp_path, run_id)
    room.make()
    (room.source / "rollouts" / "my-rollout").mkdir(parents=True)
    (room.source / "rollouts" / "my-rollout" / "main.py").touch()
    room.keep_commit("c" * 40)
    children = Children(report=report_of("fine"))
    services = Services(tmp_path, claims, platform.vault, children, threading.Event())
    return Submitted(platform, services, children, run_id, room)


def test_a_run_that_ends_has_its_figures_its_report_and_no_work_tree(submitted: Submitted) -> None:
    submitted.children.evaluation = (1, f"printed {SECRET} of {submitted.room.folder}/x\n")
    submitted.children.report = report_of(SECRET)
    run = submitted.execute()
    assert (run.status, run.lease_until) == ("finished", None)
    assert run.completed_at is not None
    assert run.metrics["overview"] == {
        "duration_ms": 9, "total_samples": 2, "completed_samples": 2, "graded": 2, "passed": 1,
        "failed": 1, "skipped": 0, "pass_rate": 0.5, "pass_threshold": 1.0, "tokens_used": 6,
    }  # fmt: skip
    assert run.metrics["pass_at_k"] == [{"k": 1, "value": 0.5}, {"k": 2, "value": 1.0}]
    assert run.metrics["reward_stats"]["median"] == 0.5
    assert "info run: printed *** of x" in submitted.log
    for job in submitted.children.jobs:
        assert (job.environment["KEY"], job.environment["LEVEL"]) == (SECRET, "INFO")
        assert SECRET not in repr(job)
        assert job.lock == submitted.room.lock
    assert not submitted.room.source.exists()
    with submitted.platform.database.reading() as session:
        raw = session.connection().exec_driver_sql("SELECT report, results, metrics FROM runs")
        assert SECRET not in repr(raw.all())


FAILURES = [
    ({"question": (1, "asking\nthe key is wrong\n")},
     "the model does not answer: the key is wrong"),
    ({"evaluation": (4, "ERROR: no such agent\n"), "report": None}, "no such agent"),
    ({"evaluation": (3, ""), "report": None}, "the evaluation ended with exit status 3"),
    ({"evaluation": (152, ""), "report": None},
     "the evaluation ended with exit status 152: a process of it used more processor time"),
    ({"evaluation": (0, ""), "report": None}, "the evaluation has left no report"),
    ({"report": report_of("x", halted="the key ran out")}, "the key ran out"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "reason"), FAILURES)
def test_a_run_that_fails_says_why(
    submitted: Submitted, values: dict[str, Any], reason: str
) -> None:
    vars(submitted.children).update(values)
    run = submitted.execute()
    assert run.status == "failed"
    assert run.results["error"].startswith(reason)
    assert f": {reason}" in submitted.log
    assert len(submitted.children.jobs) == (1 if "question" in values else 2)


def test_what_is_missing_is_told_before_any_child_is_started(submitted: Submitted) -> None:
    (submitted.room.source / "rollouts" / "my-rollout" / "main.py").unlink()
    run = submitted.execute()
    assert run.results["error"].startswith("experiment_config.entrypoint: there is no file")
    with submitted.platform.database.writing() as session:
        session.connection().exec_driver_sql("DELETE FROM secrets")
    submitted.platform.set_run(submitted.run_id, status="pending")
    assert submitted.execute().results["error"].startswith("there is no secret KEY any more")
    assert submitted.children.jobs == []


def test_every_program_of_a_run_is_held_as_the_operator_wants(submitted: Submitted) -> None:
    build_of_its_own(submitted)
    held = Confinement(JobLimits(cpu_s=9), wrapper=("box", "{room}", "{environment}", "{data}"))
    submitted.services = replace(submitted.services, confinement=held)
    assert submitted.execute().status == "finished"
    for job in submitted.children.jobs:
        assert job.limits == JobLimits(cpu_s=9)
        assert job.wrapper[:2] == ("box", str(submitted.room.folder))
    built, *_, question, evaluation = submitted.children.jobs
    environment = str(Path(evaluation.words[0]).parents[2])
    assert built.wrapper[2] == evaluation.wrapper[2] == environment
    assert question.wrapper[2:] == (str(submitted.room.folder), str(submitted.services.data))


def build_of_its_own(submitted: Submitted) -> None:
    """Have the rollout want a package, and the platform build environments."""
    project = submitted.room.source / "rollouts/my-rollout/pyproject.toml"
    project.write_text('[project]\ndependencies = ["tinylib"]')
    environments = Environments(submitted.services.data, submitted.children, BuildSettings(uv="uv"))
    submitted.services = replace(submitted.services, environments=environments)


def test_an_evaluation_runs_in_the_environment_that_was_built_for_it(submitted: Submitted) -> None:
    build_of_its_own(submitted)
    submitted.children.build = (0, f"installed into {submitted.services.data}/environments/x\n")
    assert submitted.execute().status == "finished"
    *built, question, evaluation = submitted.children.jobs
    assert [job.words[1] for job in built] == ["venv", "-I", "pip"]
    home = Path(evaluation.words[0]).parents[2]
    assert home.parent == submitted.services.data / "environments"
    assert evaluation.environment["PATH"].startswith(f"{home}/venv/bin:")
    assert question.words[0] == sys.executable
    assert "info build: installed into environments/x" in submitted.log


def test_a_build_that_fails_fails_the_run_with_its_reason_and_its_log(submitted: Submitted) -> None:
    build_of_its_own(submitted)
    submitted.children.build = (1, "one\ntwo\n")
    run = submitted.execute()
    assert run.status == "failed"
    assert run.results["error"] == "the rollout's environment cannot be built: one / two"
    assert "info build: two\nerror build: the rollout's environment" in submitted.log
    assert len(submitted.children.jobs) == 1


def test_a_repository_that_cannot_be_cloned_fails_the_run(submitted: Submitted) -> None:
    (submitted.room.folder / "commit").unlink()
    with submitted.platform.database.writing() as session:
        workspace = session.get_one(Workspace, submitted.platform.account.workspace_id)
        workspace.clone_url = "ext::touch x"
    run = submitted.execute()
    assert run.status == "failed"
    assert "error clone: the workspace's clone URL must be" in submitted.log


@pytest.mark.slow
def test_stopping_ends_the_child_and_keeps_its_report(submitted: Submitted) -> None:
    children = submitted.children
    children.evaluation = (None, "")

    def stop() -> None:
        submitted.platform.set_run(submitted.run_id, status="stopped")

    children.on_wait = stop
    run = submitted.execute()
    assert run.status == "stopped"
    assert run.report["summary"]["total_runs"] == 2
    assert "info stop: everything of the run was ended" in submitted.log
    assert not submitted.room.source.exists()


def test_a_platform_that_ends_leaves_the_run_to_the_next_start(submitted: Submitted) -> None:
    children = submitted.children
    children.evaluation = (None, "")
    children.on_wait = submitted.services.shutdown.set
    assert submitted.execute().status == "running"
    assert submitted.room.source.exists()
    journal = submitted.room.kept / "x" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    submitted.services = replace(
        submitted.services,
        claims=replace(submitted.services.claims, owner="second"),
        shutdown=threading.Event(),
    )
    children.evaluation = (0, "")
    assert submitted.execute().status == "finished"
    assert "--osmosis-extend" in children.jobs[-1].words
    assert "--osmosis-extend" not in children.jobs[1].words


def test_a_database_that_fails_for_a_while_interrupts_the_run(submitted: Submitted) -> None:
    def fail() -> None:
        raise OperationalError("", None, Exception("locked"))

    submitted.children.evaluation = (None, "")
    submitted.children.on_wait = fail
    with pytest.raises(OperationalError):
        submitted.execute()
    assert run_of(submitted.platform, submitted.run_id).status == "running"
    assert submitted.room.source.exists()


def test_an_error_of_the_platform_itself_fails_the_run_without_its_text(
    submitted: Submitted,
) -> None:
    submitted.room.report.mkdir()
    with pytest.raises(OSError):
        submitted.execute()
    run = run_of(submitted.platform, submitted.run_id)
    assert run.results["error"] == "the platform failed; its operator finds why in its log"


def test_a_scheduler_executes_what_waits_until_it_is_stopped(submitted: Submitted) -> None:
    done = threading.Event()
    submitted.children.on_wait = done.set
    scheduler = Scheduler(submitted.services, max_runs=2)
    scheduler.start()
    assert done.wait(60)
    scheduler.stop()
    assert run_of(submitted.platform, submitted.run_id).status == "finished"


@pytest.mark.parametrize(("kills", "status"), [(2, "finished"), (3, "failed")])
def test_an_evaluation_that_was_killed_goes_on_twice(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch, kills: int, status: str
) -> None:
    statuses = iter([KILLED] * kills + [0])
    evaluate = submitted.children.evaluate

    def killed(evaluation: Evaluation) -> Ended:
        ended = evaluate(evaluation)
        ended.status = next(statuses)
        if ended.status == KILLED:
            submitted.room.report.unlink()
        return ended

    monkeypatch.setattr(submitted.children, "evaluate", killed)
    assert submitted.execute().status == status
    assert submitted.log.count("the evaluation was killed; it goes on with") == 2
    assert ("was killed 3 times, as the system does" in submitted.log) == (status == "failed")
