"""A run from its claim to its end, with children that only seem to run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.orm import Session

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import EvaluationJob, JobLimits, RunAs
from osmosis_platform.database.connection import Database
from osmosis_platform.database.models import Workspace
from osmosis_platform.environments.build import Environments
from osmosis_platform.environments.recipe import BuildSettings
from osmosis_platform.execution import execute, tail
from osmosis_platform.execution.checkout import WorkTree
from osmosis_platform.execution.execute import KILLED
from osmosis_platform.execution.run_figures import Progress
from osmosis_platform.execution.scheduler import Scheduler
from osmosis_platform.execution.writing import RunWriter
from tests.support.executed_runs import SECRET, Ended, Submitted, report_of
from tests.support.submitted_runs import run_of


@pytest.mark.fault("the rollout prints a secret")
def test_a_run_that_ends_has_its_figures_its_report_and_no_work_tree(submitted: Submitted):
    submitted.children.evaluation = (1, f"printed {SECRET} of {submitted.run_folder.folder}/x\n")
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
    assert (
        submitted.run_folder.output.read_text()
        == f"printed *** of {submitted.run_folder.folder}/x\n"
    )
    for job in submitted.children.jobs:
        assert (job.environment["KEY"], job.environment["LEVEL"]) == (SECRET, "INFO")
        assert SECRET not in repr(job)
        assert job.lock == submitted.run_folder.lock
    assert not submitted.run_folder.source.exists()
    with submitted.platform.database.reading() as session:
        raw = session.connection().exec_driver_sql("SELECT report, results, metrics FROM runs")
        assert SECRET not in repr(raw.all())


TRACEBACK = """\
ERROR: 'main.py' cannot be imported
Traceback (most recent call last):
  File "main.py", line 1, in <module>
    x
NameError: name 'x' is not defined

"""
FAILURES = [
    ({"evaluation": (4, "ERROR: the model does not answer: the key is wrong\n"), "report": None},
     "the model does not answer: the key is wrong"),
    ({"evaluation": (4, "ERROR: API key: OPENAI_API_KEY is not set: export it, or name another "
                        "variable with --osmosis-api-key-env\n"), "report": None},
     "API key: OPENAI_API_KEY is not set: set it with `osmosis secret set`, and name it in"),
    ({"evaluation": (4, "ERROR: API key: A is not sent over plain http to b: give "
                        "--osmosis-api-key-env A to send it\n"), "report": None},
     "API key: A is not sent over plain http to b: give its address with https://"),
    ({"evaluation": (4, "ERROR: no such agent\n"), "report": None}, "no such agent"),
    ({"evaluation": (4, "ERROR: no\0 such agent\n"), "report": None}, "no"),
    ({"evaluation": (4, TRACEBACK), "report": None},
     "'main.py' cannot be imported: NameError: name 'x' is not defined"),
    ({"evaluation": (3, ""), "report": None}, "the evaluation ended with exit status 3"),
    ({"evaluation": (152, ""), "report": None},
     "the evaluation ended with exit status 152: a process of it used more processor time"),
    ({"evaluation": (0, ""), "report": None}, "the evaluation has left no report"),
    ({"report": report_of("x", halted="the key ran out")}, "the key ran out"),
]  # fmt: skip


@pytest.mark.fault(
    "the model has another name, the key is wrong, the rollout is not there",
    "a run takes more memory, processor time or files than the operator allows",
)
@pytest.mark.parametrize(("values", "reason"), FAILURES)
def test_a_run_that_fails_says_why(submitted: Submitted, values: dict[str, Any], reason: str):
    vars(submitted.children).update(values)
    run = submitted.execute()
    assert run.status == "failed"
    assert run.results["error"].startswith(reason)
    assert f": {reason}" in submitted.log
    assert len(submitted.children.jobs) == 1


def test_log_and_report_name_the_dataset_as_users_know_it(submitted: Submitted):
    dataset_id = run_of(submitted.platform, submitted.run_id).dataset_id
    item = f"../../../datasets/{dataset_id}/rows.jsonl::row-1"
    name = "../datasets/my-dataset.jsonl"
    submitted.children.evaluation = (0, f"{item} ...\n{name}: 1 row\n")
    submitted.children.report = report_of("half \ud800 of \U0001f600", name=name)
    run = submitted.execute()
    assert "half ? of \U0001f600" in repr(run.report)
    assert "info run: datasets/my-dataset.jsonl::row-1 ..." in submitted.log
    assert "info run: datasets/my-dataset.jsonl: 1 row" in submitted.log
    assert run.report["config"]["name"] == "datasets/my-dataset.jsonl"


@pytest.mark.fault("the model has another name, the key is wrong, the rollout is not there")
def test_what_is_missing_is_reported_before_any_child_is_started(submitted: Submitted):
    (submitted.run_folder.source / "rollouts" / "my-rollout" / "main.py").unlink()
    run = submitted.execute()
    assert run.results["error"].startswith("experiment_config.entrypoint: there is no file")
    with submitted.platform.database.writing() as session:
        session.connection().exec_driver_sql("DELETE FROM secrets")
    submitted.platform.set_run(submitted.run_id, status="pending", completed_at=None)
    assert submitted.execute().results["error"].startswith("there is no secret KEY any more")
    assert submitted.children.jobs == []


def test_every_program_of_a_run_is_held_as_the_operator_wants_in_the_environment_built_for_it(
    submitted: Submitted,
):
    build_of_its_own(submitted)
    submitted.children.build = (0, f"installed into {submitted.services.data}/environments/x\n")
    held = Confinement(JobLimits(cpu_s=9), wrapper=("box", "{room}", "{environment}", "{data}"))
    submitted.services = replace(submitted.services, confinement=held)
    assert submitted.execute().status == "finished"
    for job in submitted.children.jobs:
        assert job.limits == JobLimits(cpu_s=9)
        assert job.wrapper[:2] == ("box", str(submitted.run_folder.folder))
    built, *_, evaluation = submitted.children.jobs
    environment = str(Path(evaluation.words[0]).parents[2])
    assert built.wrapper[2] == evaluation.wrapper[2] == environment
    assert evaluation.wrapper[3] == str(submitted.services.data)
    assert [job.words[1] for job in submitted.children.jobs[:-1]] == ["venv", "-I", "pip"]
    assert Path(environment).parent == submitted.services.data / "environments"
    assert evaluation.environment["PATH"].startswith(f"{environment}/venv/bin:")
    assert "info build: installed into environments/x" in submitted.log


def test_another_user_cannot_replace_what_the_platform_writes_again(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
):
    owners: dict[Path, int] = {}

    def chown(path: str | Path, uid: int, gid: int, **how: object) -> None:
        owners[Path(path)] = uid

    monkeypatch.setattr(os, "chown", chown)
    user = RunAs("somebody", os.getuid() + 1, os.getgid())
    submitted.services = replace(submitted.services, confinement=Confinement(user=user))
    assert submitted.execute().status == "finished"
    room = submitted.run_folder
    read = (room.datasets, room.datasets / "my-dataset.jsonl")
    assert owners == dict.fromkeys(room.written, user.uid) | dict.fromkeys(read, -1)


def build_of_its_own(submitted: Submitted) -> None:
    """Have the rollout want a package, and the platform build environments."""
    project = submitted.run_folder.source / "rollouts/my-rollout/pyproject.toml"
    project.write_text('[project]\ndependencies = ["tinylib"]')
    environments = Environments(submitted.services.data, submitted.children, BuildSettings(uv="uv"))
    submitted.services = replace(submitted.services, environments=environments)


@pytest.mark.fault(
    "a requirement of the rollout is not to be had, conflicts with the plugin, or its "
    "`pyproject.toml` cannot be read"
)
def test_a_build_that_fails_fails_the_run_with_its_reason_and_its_log(submitted: Submitted):
    build_of_its_own(submitted)
    submitted.children.build = (1, "one\ntwo\n")
    run = submitted.execute()
    assert run.status == "failed"
    assert run.results["error"] == "the rollout's environment cannot be built: two"
    assert "info build: two\nerror build: the rollout's environment" in submitted.log
    assert len(submitted.children.jobs) == 1


def test_the_branch_that_a_config_names_is_cloned_from_where_the_workspace_says(
    submitted: Submitted,
):
    (submitted.run_folder.folder / "commit").unlink()
    submission = dict(run_of(submitted.platform, submitted.run_id).submission)
    submission["experiment_config"] = {**submission["experiment_config"], "branch": "a/b"}
    submitted.platform.set_run(submitted.run_id, submission=submission)
    submitted.children.report = None
    submitted.execute()
    assert "info clone: cloning acme/agents at the newest commit of a/b" in submitted.log
    assert any(job.words[-1] == "refs/heads/a/b" for job in submitted.children.jobs)
    with submitted.platform.database.writing() as session:
        workspace = session.get_one(Workspace, submitted.platform.account.workspace_id)
        workspace.clone_url = "ext::touch x"
    submitted.platform.set_run(submitted.run_id, status="pending", completed_at=None)
    assert submitted.execute().status == "failed"
    assert "error clone: the workspace's clone URL must be" in submitted.log


@pytest.mark.parametrize("link", ["rollouts/my-rollout", "rollouts/my-rollout/main.py"])
def test_an_entrypoint_that_is_a_symlink_fails_the_run_and_says_so(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch, link: str
):
    (submitted.run_folder.folder / "commit").unlink()
    tree = WorkTree(submitted.run_folder.source, "c" * 40, symlinks=("other", link))
    monkeypatch.setattr(execute, "check_out", lambda *words, **named: tree)
    run = submitted.execute()
    assert run.results["error"] == (
        f"experiment_config: {link} is a symlink, and none is followed: name what it leads to"
    )
    message = f"warning clone: symlinks became files that hold their target: other, {link}"
    assert message in submitted.log


@pytest.mark.fault("a run is stopped")
@pytest.mark.slow
def test_stopping_ends_the_child_and_keeps_its_report(submitted: Submitted):
    children = submitted.children
    children.evaluation = (None, "")

    def stop() -> None:
        submitted.platform.set_run(submitted.run_id, status="stopped")

    children.on_wait = stop
    run = submitted.execute()
    assert run.status == "stopped"
    assert run.report["summary"]["total_runs"] == 2
    assert run.lease_until is None  # it can be deleted
    assert "info stop: everything of the run was ended" in submitted.log
    assert not submitted.run_folder.source.exists()


@pytest.mark.fault("the platform is ended, or killed, while it executes runs")
def test_a_platform_that_ends_leaves_the_run_to_the_next_start(submitted: Submitted):
    children = submitted.children
    children.evaluation = (None, "")
    children.on_wait = submitted.services.shutdown.set
    assert submitted.execute().status == "running"
    assert submitted.run_folder.source.exists()
    journal = submitted.run_folder.journal_dir / "x" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    submitted.services = replace(
        submitted.services,
        claims=replace(submitted.services.claims, owner="second"),
        shutdown=threading.Event(),
    )
    children.evaluation = (0, "")
    assert submitted.execute().status == "finished"
    first, again = (job.words for job in children.jobs)
    assert ("--osmosis-extend" in again, "osmosis_executors.question" in again) == (True, False)
    assert ("--osmosis-extend" in first, "osmosis_executors.question" in first) == (False, True)
    assert "asking openai/x one question, then evaluating a random tenth of the" in submitted.log


class Outage:
    """A database that is away from the first look at an evaluation on."""

    def __init__(self, submitted: Submitted, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_over = False
        self.failures = 0
        self._writing = submitted.platform.database.writing
        submitted.children.evaluation = (None, "printed meanwhile\n")
        submitted.children.on_wait = lambda: monkeypatch.setattr(Database, "writing", self)

    def __call__(self) -> AbstractContextManager[Session]:
        if self.is_over:
            return self._writing()
        self.failures += 1
        raise OperationalError("", None, Exception("away"))


def test_a_run_goes_on_while_its_database_is_away_for_less_than_the_lease(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
):
    outage = Outage(submitted, monkeypatch)
    away = submitted.children.on_wait

    def end() -> None:
        away()
        if outage.failures:
            outage.is_over = True
            submitted.children.started[-1].status = 0

    submitted.children.on_wait = end
    assert submitted.execute().status == "finished"
    assert outage.failures
    assert "info run: printed meanwhile\n" in submitted.log


def test_a_database_that_is_away_for_longer_than_the_lease_interrupts_the_run(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
):
    claims = replace(submitted.services.claims, lease_s=0)
    submitted.services = replace(submitted.services, claims=claims)
    outage = Outage(submitted, monkeypatch)
    with pytest.raises(OperationalError):
        submitted.execute()
    outage.is_over = True
    assert run_of(submitted.platform, submitted.run_id).status == "running"
    assert submitted.run_folder.source.exists()
    submitted.children.evaluation = (0, "")
    assert submitted.execute().status == "finished"
    message = "warning run: interrupted: the platform was ended, or without its database"
    assert message in submitted.log


@pytest.mark.parametrize(
    "error", [DataError("", None, Exception("out of range")), OSError("a text of the system")]
)
def test_what_no_database_takes_and_an_error_of_the_platform_fail_the_run_without_their_text(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    monkeypatch.setattr(RunWriter, "set_figures", Mock(side_effect=error))
    with pytest.raises(type(error)):
        submitted.execute()
    run = run_of(submitted.platform, submitted.run_id)
    assert run.status == "failed"
    assert run.results["error"] == "the platform failed; its operator finds why in its log"


def test_a_scheduler_executes_what_waits_until_it_is_stopped(submitted: Submitted):
    done = threading.Event()
    submitted.children.on_wait = done.set
    scheduler = Scheduler(submitted.services, max_runs=2)
    scheduler.start()
    assert done.wait(60)
    scheduler.stop()
    assert run_of(submitted.platform, submitted.run_id).status == "finished"


@pytest.mark.fault("a process of an evaluation is killed, as where memory is short")
@pytest.mark.parametrize(("kills", "status"), [(2, "finished"), (3, "failed")])
def test_an_evaluation_that_was_killed_goes_on_twice(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch, kills: int, status: str
):
    statuses = iter([KILLED] * kills + [0])
    evaluate = submitted.children.evaluate

    def killed(evaluation: EvaluationJob) -> Ended:
        ended = evaluate(evaluation)
        ended.status = next(statuses)
        if ended.status == KILLED:
            submitted.run_folder.report.unlink()
        return ended

    monkeypatch.setattr(submitted.children, "evaluate", killed)
    assert submitted.execute().status == status
    assert submitted.log.count("the evaluation was killed; it resumes with") == 2
    assert ("was killed 3 times, as the system does" in submitted.log) == (status == "failed")


def leave(submitted: Submitted, text: str) -> None:
    """Have the evaluation leave this as its report."""
    submitted.children.report = None
    submitted.children.on_wait = lambda: submitted.run_folder.report.write_text(text)


def padded(**more: Any) -> str:
    """A report with more fields than there are."""
    found = report_of("fine").model_dump(mode="python")
    found["summary"]["eval_fns"]["reward"] |= {"pass_at_3": 0.25, "odd": [[]] * 9, "text": "x"}
    found["config"]["settings"] = {"many": [[]] * 100_000}
    return json.dumps({**found, **more})


@pytest.mark.fault("a run's report is made to take much memory or time")
@pytest.mark.parametrize(
    ("text", "status", "message"),
    [  # texts of megabytes are made where they are used, not while tests are collected
        (lambda: padded(padding=[[]] * 300_000), "finished", "the report is kept"),
        pytest.param(
            lambda: padded(padding=[[]] * 20_000_000),
            *("finished", "the report is"),
            marks=pytest.mark.slow,
        ),
        (lambda: "[" * 200_000, "failed", "the report is not one of this version"),
        (lambda: json.dumps([[]] * 300_000), "failed", "the report is not one of this version"),
        (
            lambda: padded(rows=[{"row_index": 0, "runs": [], "row_id": "x" * 10**6}] * 34),
            *("finished", "the report is too large to be kept; its figures are"),
        ),
        (lambda: "{}", "failed", "the report is not one of this version"),
        (lambda: "\0", "failed", "the report is not one of this version"),
    ],
    ids=["unknown fields", "very many", "deep", "a list", "many rows", "nothing", "no JSON"],
)
def test_of_a_report_what_is_known_is_kept_and_a_child_finds_that_out(
    submitted: Submitted, text: Callable[[], str], status: str, message: str
):
    leave(submitted, text())
    run = submitted.execute()
    assert (run.status, message in submitted.log) == (status, True), submitted.log
    assert not [*submitted.run_folder.folder.glob("report-*")]
    if run.report is not None:
        assert "padding" not in run.report
        assert run.report["config"]["settings"] == {}
        reward = run.report["summary"]["eval_fns"]["reward"]
        assert reward.items() >= {"pass_at_2": 1.0, "pass_at_3": 0.25}.items()
        assert not {"odd", "text"} & reward.keys()
    if "figures" in message:
        assert run.metrics["reward_stats"] == {}


def test_a_log_has_no_control_characters(submitted: Submitted):
    odd = "\x1b[31mred\x1b[0m \u202eevil\u2066 \x07\x9b2J a\rb \0 tab\t"
    submitted.children.evaluation = (4, f"{odd}\nERROR: {odd}\n")
    submitted.children.report = None
    run = submitted.execute()
    shown = submitted.log + run.results["error"]
    assert "\\x1b[31mred" in shown
    assert [c for c in shown if not c.isprintable() and c not in "\n\t"] == []


def test_what_lists_of_runs_have_of_a_report_is_short(submitted: Submitted):
    gate = {
        "gate": "mean >= 0.5", "suite": "", "outcome": "passed", "metric": "mean", "eval_fn": None,
        "operator": ">=", "threshold": 0.5, "figure": None, "low": None, "high": None, "rows": 1,
        "unknown": 0, "more_rows": None, "sentence": "x" * 10_000,
    }  # fmt: skip
    leave(submitted, padded(gates=[gate] * 500))
    run = submitted.execute()
    assert run.status == "finished", submitted.log
    assert len(run.report["gates"]) == 500
    assert len(run.metrics["gates"]) == 100
    assert len(json.dumps(run.metrics)) < 400_000


@pytest.mark.fault("the rollout prints a secret")
def test_what_was_said_is_masked_with_the_values_that_the_run_was_given(
    submitted: Submitted,
):
    said = submitted.run_folder.report.with_name("report.trajectories.jsonl")

    def rotate() -> None:
        said.write_text(f"{SECRET}, newer-than-the-run\n")
        submitted.platform.add_secret("KEY", value="newer-than-the-run")

    submitted.children.on_wait = rotate
    assert submitted.execute().status == "finished"
    assert submitted.run_folder.conversations.read_text() == "***, newer-than-the-run\n"
    assert not said.exists()


@pytest.mark.fault("a secret is rotated while its run waits to resume")
def test_what_earlier_attempts_were_given_is_masked_too(submitted: Submitted):
    room = submitted.run_folder
    submitted.children.evaluation = (None, "")
    submitted.children.on_wait = submitted.services.shutdown.set
    assert submitted.execute().status == "running"
    assert SECRET.encode() not in room.given.read_bytes()
    submitted.platform.add_secret("KEY", value="newer-than-the-first")
    submitted.services = replace(
        submitted.services,
        claims=replace(submitted.services.claims, owner="second"),
        shutdown=threading.Event(),
    )
    submitted.children.evaluation = (0, f"{SECRET}, newer-than-the-first\n")
    submitted.children.report = report_of(SECRET)
    run = submitted.execute()
    assert run.status == "finished", submitted.log
    assert submitted.children.jobs[-1].environment["KEY"] == "newer-than-the-first"
    assert room.output.read_text() == "***, ***\n"
    assert SECRET not in submitted.log + json.dumps(run.report)
    assert not room.given.exists()


def test_a_secret_that_is_a_number_of_the_report_leaves_its_form(submitted: Submitted):
    submitted.platform.add_secret("KEY", value="1764291820")
    found = report_of("it is 1764291820").model_dump(mode="python")
    found["summary"]["total_duration_ms"] = 1764291820
    leave(submitted, json.dumps(found))
    run = submitted.execute()
    assert run.status == "finished", submitted.log
    assert [each["outcome"] for each in run.report["rows"][0]["runs"]] == ["it is ***"] * 2
    assert run.metrics["overview"]["duration_ms"] == 1764291820


@pytest.mark.fault("a run writes very much of what the platform reads")
def test_what_a_run_has_written_is_read_in_pieces_that_are_limited(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
):
    room = submitted.run_folder
    monkeypatch.setattr(tail, "BLOCK", 1000)
    submitted.children.evaluation = (0, "\n" * 20_000 + f"after {SECRET}\n")
    said = room.report.with_name("report.trajectories.jsonl")
    text = f'{{"suite": "../a"}}\n{SECRET}\n' * 1000

    def leave_said() -> None:
        said.write_text(text)

    submitted.children.on_wait = leave_said
    run = submitted.execute()
    assert run.status == "finished", submitted.log
    assert "the log takes 5,000 lines; what comes now is left out" in submitted.log
    assert "after" not in submitted.log
    assert room.output.read_text() == "\n" * 20_000 + "after ***\n"
    assert room.conversations.read_text() == '{"suite": "a"}\n***\n' * 1000


def test_the_look_at_a_journal_is_limited_and_the_next_one_waits_as_long_as_it_took(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
):
    moment, looks = [0.0], list[float]()

    def look(self: Progress) -> bool:
        looks.append(moment[0])
        moment[0] += 4.0
        return False

    def later() -> None:
        moment[0] += 1.0
        if moment[0] > 100:
            submitted.children.started[-1].status = 0

    monkeypatch.setattr(Progress, "update", look)
    monkeypatch.setattr(execute, "monotonic", lambda: moment[0])
    journal = submitted.run_folder.journal_dir / "x" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()
    submitted.children.evaluation = (None, "")
    submitted.children.on_wait = later
    assert submitted.execute().status == "finished", submitted.log
    assert all(after - before >= 40 for before, after in pairwise(looks[:-1])), looks
    assert 2 < len(looks) < 6


@pytest.mark.fault("a run leaves folders where the platform has files")
def test_a_folder_in_place_of_a_report_is_removed(submitted: Submitted):
    (submitted.run_folder.report / "x").mkdir(parents=True)
    (submitted.run_folder.conversations / "x").mkdir(parents=True)
    assert submitted.execute().status == "finished", submitted.log


@pytest.mark.fault("a run puts a link where the platform writes or reads")
def test_no_link_of_a_run_leads_the_platform_elsewhere(submitted: Submitted):
    room, key = submitted.run_folder, submitted.services.data / "secret.key"
    before = key.read_text()
    room.conversations.with_name("output.masked").symlink_to(key)
    room.conversations.symlink_to(key)
    (room.folder / "report-taken").symlink_to(key)

    def link() -> None:
        room.report.unlink(missing_ok=True)
        os.link(key, room.report)
        said = room.report.with_name("report.trajectories.jsonl")
        said.unlink(missing_ok=True)
        os.link(key, said)
        room.output.unlink(missing_ok=True)
        room.output.symlink_to(key)

    submitted.children.on_wait = link
    submitted.children.evaluation = (4, "x\n")
    run = submitted.execute()
    assert (run.status, run.report) == ("failed", None)
    assert key.read_text() == before
    assert before not in submitted.log
    assert not room.conversations.exists()
