"""One submitted run from its claim to its end: clone, build, run, report."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from time import monotonic

from sqlalchemy.exc import DataError, SQLAlchemyError

from osmosis_ai.platform.run_kinds import TRAINING
from osmosis_ai.platform.workspace import ROLLOUTS, EntrypointError, find_entrypoint
from osmosis_ai.secret import Redactor, Secret
from osmosis_executors.job import EvaluationJob, Running, wait_for_end
from pytest_osmosis.escaping import shortened
from pytest_osmosis.spec import ModelSpec

from ..environments.build import PythonEnvironment
from ..environments.project import EnvironmentProblem
from .checkout import CheckoutError, CloneSource, check_out
from .children import OWN_PYTHON, Children
from .git_program import GitProgram
from .orders import Rows, evaluation_words
from .outcome import (
    ReportProblem,
    ReportTooLarge,
    exit_sentence,
    last_mistake,
    read_outcome,
    take_conversations,
)
from .run_figures import Progress
from .run_folder import RunFolder
from .services import RunFailed, Services, read_submitted
from .tail import TailedFile, new_file, remove
from .training import TrainingRun
from .writing import NotToGoOn, RunWatch, RunWriter

EVALUATED = (0, 1)
"""Statuses of pytest where every run of a row has ended: all passed, or some did not."""
KILLED = 128 + signal.SIGKILL
_LISTED = 500
"""Characters of paths in a line of the log."""
GOES_ON = 2
"""How often an evaluation resumes that was killed by neither a stop nor the platform's end."""
_SHARE = 10
"""So many times as long as its last look took, the platform waits before the next one."""


def execute(services: Services, run_id: str) -> None:
    """Execute a run that was taken until it has ended, must not continue, or the platform ends."""
    record = RunWriter(services.claims, run_id)
    is_expected = False
    try:
        _Execution(services, run_id, record).run()
        is_expected = True
    except NotToGoOn as error:
        is_expected = True
        if error.reason == "shutdown":
            record.say("the platform ends; the run resumes when it is started again", step="run")
            services.claims.give_back(run_id)
        elif error.reason == "stopped":
            record.say("everything of the run was ended; what was finished is kept", step="stop")
            services.claims.release(run_id)
    except SQLAlchemyError as error:
        # The lease ends, and the run is taken again, unless what was to be written is at fault.
        is_expected = not isinstance(error, DataError)
        raise
    except RunFailed as error:
        is_expected = True
        record.end(error.status, str(error), step=error.step)
    finally:
        if not is_expected:  # what the error says is for the platform's own log
            message = "the platform failed; its operator finds why in its log"
            record.end("failed", message, step="run")


class _Execution:
    def __init__(self, services: Services, run_id: str, record: RunWriter) -> None:
        self._services = services
        self._run_id = run_id
        self._record = record
        self._watch = RunWatch(services.claims, run_id, services.shutdown)
        self._run_folder = RunFolder.of_run(services.data, run_id)
        self._order = read_submitted(
            services.claims.database, services.vault, services.data, run_id
        )
        self._record.without_paths = self._without_paths
        self._children = Children(
            self._run_folder, self._order, services.confinement, services.grace_s
        )
        self._rows = Rows.of_run(run_id, self._order.submission)
        self._progress: Progress | None = None
        self._counts_at = 0.0
        """When the journal is looked at again."""
        dataset = self._order.dataset
        self._datasets = [str(dataset), os.path.relpath(dataset, self._run_folder.source)]
        """Paths by which programs name the dataset."""

    def run(self) -> None:
        if self._order.missing:
            message = ", ".join(self._order.missing)
            raise RunFailed(f"there is no secret {message} any more; set it again", "build")
        self._children.make_folders()
        self._mask()
        try:
            self._clone()
            self._check_files()
            with self._environment() as environment:
                if self._order.kind == TRAINING.name:
                    self._train(environment)
                else:
                    self._evaluate(environment)
        except NotToGoOn as error:
            if error.reason == "stopped":
                self._run_folder.clean()
            raise
        except RunFailed:
            self._run_folder.clean()
            raise
        self._run_folder.clean()

    def _mask(self) -> None:
        """Mask what the run is given, and what an earlier attempt was: its journal is there."""
        vault, given = self._services.vault, self._run_folder.given
        known = given.read_bytes().splitlines() if given.exists() else []
        secrets = [*self._order.secrets, *(Secret(vault.decrypt(each)) for each in known)]
        self._record.redact = Redactor(secrets)
        written = given.with_name("given.new")
        with new_file(written) as file:
            for value in sorted({secret.reveal() for secret in secrets}):
                file.write(vault.encrypt(value) + b"\n")
        written.replace(given)

    def _clone(self) -> None:
        """Make the work tree; an earlier attempt's is taken, which its journal belongs to."""
        if self._run_folder.commit is not None:
            return
        limits = self._services.checkout
        git = GitProgram(
            self._services.executor,
            self._run_folder.folder,
            limits.time_s,
            limits.download_bytes,
            self._watch.check,
        )
        branch = self._order.branch
        newest = f"the newest commit of {branch or 'the default branch'}"
        wanted = self._order.commit or newest
        self._record.say(f"cloning {self._order.repository} at {wanted}", step="clone")
        try:
            source = CloneSource.of_workspace(self._order.repository, self._order.clone_url)
            tree = check_out(git, source, self._order.commit, limits, branch=branch)
        except CheckoutError as error:
            raise RunFailed(str(error), "clone") from None
        for message, paths in (
            ("submodules are not fetched", tree.submodules),
            ("symlinks became files that hold their target", tree.symlinks),
        ):
            if paths:
                text = f"{message}: {shortened(', '.join(paths), _LISTED)}"
                self._record.say(text, step="clone", level="warning")
        self._refuse_link(tree.symlinks)
        self._services.confinement.give(self._run_folder.source)
        self._run_folder.keep_commit(tree.commit)
        rows = {} if self._order.kind == TRAINING.name else {"rows": self._rows.facts}
        self._record.note(commit_sha=tree.commit, **rows)
        self._record.say(f"the commit is {tree.commit}", step="clone")

    def _refuse_link(self, symlinks: Sequence[str]) -> None:
        """Fail a run whose entrypoint is a symlink, or in a folder that is one."""
        experiment = self._order.experiment
        path = PurePosixPath(ROLLOUTS, experiment["rollout"], experiment["entrypoint"])
        if found := {str(path), *map(str, path.parents)}.intersection(symlinks):
            message = f"{found.pop()} is a symlink, and none is followed: name what it leads to"
            raise RunFailed(f"experiment_config: {message}", "clone")

    def _check_files(self) -> None:
        experiment = self._order.experiment
        try:
            find_entrypoint(
                self._run_folder.source.resolve(), experiment["rollout"], experiment["entrypoint"]
            )
        except EntrypointError as error:
            raise RunFailed(f"experiment_config.{error.key}: {error}", "build") from None
        if not self._order.dataset.is_file():
            raise RunFailed("the file of the dataset is not there; upload it again", "build")

    @contextmanager
    def _environment(self) -> Iterator[PythonEnvironment]:
        """Have the Python environment of the rollout."""
        environments = self._services.environments
        if environments is None:
            self._record.say("the platform's own Python environment is used", step="build")
            yield PythonEnvironment(OWN_PYTHON, None)
            return
        log = self._run_folder.build_log
        log.unlink(missing_ok=True)
        printed = TailedFile(log)

        def follow() -> None:
            with self._watch.pass_over_errors():
                self._record.add_output(printed.lines(), step="build")

        place = self._children.build_place(
            say=lambda message: self._record.say(message, step="build"),
            follow=follow,
            check=self._watch.check,
        )
        rollout = self._order.experiment["rollout"]
        folder = self._run_folder.source / ROLLOUTS / rollout
        try:
            with environments.of_rollout(folder, place) as environment:
                yield environment
        except EnvironmentProblem as error:
            raise RunFailed(self._without_paths(str(error)), "build") from None

    def _train(self, environment: PythonEnvironment) -> None:
        if self._services.trainer is None:
            raise RunFailed("this platform has no trainer any more", "train")
        self._run_folder.trained.mkdir(mode=0o700, exist_ok=True)
        TrainingRun(
            self._services.executor,
            self._services.trainer,
            self._children,
            self._record,
            self._watch,
        ).run(environment.python)

    def _evaluate(self, environment: PythonEnvironment) -> None:
        try:
            status, taken = self._evaluated(environment)
        except NotToGoOn as error:
            if error.reason == "stopped":
                self._take_report(lambda: None)
            raise
        if status not in EVALUATED:
            raise RunFailed(self._reason(status), "run")
        if taken is None:
            raise RunFailed("the evaluation has left no report", "report")
        if taken:
            raise RunFailed(taken, "run")
        self._record.end("finished", "the report is kept", step="report")

    def _evaluated(self, environment: PythonEnvironment) -> tuple[int, str | None]:
        """Evaluate to the end; return pytest's status, and what `_take_report` does."""
        status = self._attempt(environment)
        for _ in range(GOES_ON):
            if status != KILLED:
                break
            message = "the evaluation was killed; it resumes with what was finished"
            self._record.say(message, step="run", level="warning")
            status = self._attempt(environment)
        return status, self._take_report(self._check_to_end)

    def _check_to_end(self) -> None:
        """Look after the run, which has been evaluated: a platform that ends reads its report."""
        try:
            self._watch.check()
        except NotToGoOn as error:
            if error.reason != "shutdown":
                raise

    def _attempt(self, environment: PythonEnvironment) -> int:
        """Evaluate, or resume what an earlier attempt has finished; return pytest's status."""
        resumes = self._run_folder.has_begun()
        model = self._order.experiment["model_path"]
        asks = not resumes and ModelSpec(model).persona is None
        remove(self._run_folder.report)
        dataset = self._children.put_dataset()
        self._datasets.append(str(dataset))
        words = evaluation_words(
            self._order.submission,
            self._rows,
            self._run_folder,
            dataset,
            resumes=resumes,
            asks=asks,
            python=environment.python,
        )
        facts = self._rows.facts
        which = f"the first {facts['limit']:,}" if "limit" in facts else "a random tenth"
        first = f"asking {model} one question, then " if asks else ""
        self._record.say(f"{first}evaluating {which} of the rows", step="run")
        self._run_folder.output.touch(mode=0o600)
        output = TailedFile(self._run_folder.output, self._run_folder.output.stat().st_size)
        job = self._children.job(words, self._run_folder.output, environment.python)
        names = [secret.name for secret in self._order.secrets]
        evaluation = EvaluationJob(job, names)
        return self._wait(self._services.executor.evaluate(evaluation), output)

    def _wait(self, running: Running, output: TailedFile | None = None) -> int:
        """Wait for the end of a child; follow what it prints and keeps where `output` is given."""

        def look() -> None:
            with self._watch.pass_over_errors():
                self._follow(output)
            self._watch.check()

        try:
            status = wait_for_end(running, look, grace_s=self._services.grace_s)
        finally:
            self._follow(output, to_end=True)
        assert status is not None  # its time is not limited
        return status

    def _follow(self, output: TailedFile | None, *, to_end: bool = False) -> None:
        if output is None:
            return
        for lines in output.rest() if to_end else [output.lines()]:
            self._record.add_output(lines, step="run")
            if self._record.is_full:
                break
        if to_end:
            output.mask(self._record.redact)
        began = monotonic()
        if to_end or began >= self._counts_at:
            self._count()
            self._counts_at = began + _SHARE * (monotonic() - began)

    def _count(self) -> None:
        """Count what the journal has; programs of the run may write there as much as they can."""
        journal = self._run_folder.journal()
        if self._progress is None and journal is not None:
            self._progress = Progress(journal.parent, self._order.most_runs)
        if self._progress is not None and self._progress.update():
            self._record.set_figures(self._progress.metrics)

    def _take_report(self, check: Callable[[], None]) -> str | None:
        """Import the report; return what halted the evaluation, "" for nothing, None for none."""
        try:
            take_conversations(self._run_folder, self._record.redact)
            found = read_outcome(
                self._run_folder,
                lambda text: self._record.redact(self._without_paths(text)),
                check,
            )
        except ReportTooLarge as error:
            self._record.say(str(error), step="report", level="warning")
            return ""
        except ReportProblem as error:
            raise RunFailed(str(error), "report") from None
        if found is None:
            return None
        if found.report is None:
            message = "the report is too large to be kept; its figures are"
            self._record.say(message, step="report", level="warning")
        self._record.set_figures(found.metrics, found.report)
        return found.halted

    def _without_paths(self, text: str) -> str:
        """Name files as users know them, and not where the platform has them."""
        for shown in self._datasets:
            text = text.replace(shown, self._order.dataset_name)
        for folder in (self._run_folder.folder, self._run_folder.data):
            text = text.replace(f"{folder}/", "")
        return text

    def _reason(self, status: int) -> str:
        """What pytest said last of a mistake, else its exit status."""
        if status == KILLED:
            times = f"{GOES_ON + 1} times"
            return f"the evaluation was killed {times}, as the system does where memory is short"
        found = last_mistake(self._run_folder.output)
        if found:
            return self._without_paths(found)
        return exit_sentence(status)
