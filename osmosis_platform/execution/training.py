"""A training run: a server of the rollout, and the operator's trainer beside it.

The trainer's words are the operator's alone. What it is to train is in its environment, and so is
every secret.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from osmosis_ai.platform.workspace import ROLLOUTS
from osmosis_ai.rollout_server.settings import KEY_VARIABLE, TRAINERS_VARIABLE
from osmosis_ai.secret import Redactor, Secret
from osmosis_executors.job import ENDING_S, Executor, Job, JobLimits, Running

from .children import Children
from .services import RunFailed, TrainerCommand
from .tail import TailedFile
from .writing import RunWatch, RunWriter

STARTING_S = 300.0
_POLL_S = 0.25
_PASSED_ON_NOT = "OSMOSIS_"
"""Variables of the platform that start so are not the trainer's."""


@dataclass(frozen=True, slots=True)
class ServedRollout:
    """The server of a rollout, while it runs."""

    running: Running
    url: str
    follow: Callable[[], None]
    """Adds what it has printed to the log."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One training run, once its environment is there."""

    executor: Executor
    trainer: TrainerCommand
    children: Children
    record: RunWriter
    watch: RunWatch

    def run(self, python: Path) -> None:
        """Serve the rollout, and run the trainer until it has ended."""
        key = Secret(secrets.token_urlsafe(32), KEY_VARIABLE)
        self.record.redact = Redactor([*self.children.run.secrets, key])
        origins = self.trainer.origins or (f"http://127.0.0.1:{_free_port()}",)
        with ExitStack() as started:
            server = self._serve(started, python, key, origins)
            self.record.say("the rollout is served; starting the trainer", step="train")
            variables = self._variables(server.url, key, origins[0])
            status = self._train(started, variables, server)
        self._end(status)

    def _serve(
        self, started: ExitStack, python: Path, key: Secret, origins: tuple[str, ...]
    ) -> ServedRollout:
        """Start the server of the rollout; return it once it is there."""
        run_folder, experiment = self.children.run_folder, self.children.run.experiment
        file = f"{ROLLOUTS}/{experiment['rollout']}/{experiment['entrypoint']}"
        said = run_folder.folder / "server-address"
        said.unlink(missing_ok=True)
        started.callback(lambda: TailedFile(said).mask(self.record.redact))
        job = self.children.job(
            [str(python), "-m", "osmosis_executors.serve_rollout", file],
            said,
            python,
            errors=run_folder.folder / "server-output",
            more={KEY_VARIABLE: key.reveal(), TRAINERS_VARIABLE: " ".join(origins)},
        )
        server = self._start(started, job)
        printed = self._following(started, job.errors, "rollout")
        end = time.monotonic() + STARTING_S
        while not (address := said.read_text("utf-8")).endswith("\n"):
            printed()
            if server.wait(_POLL_S) is not None or time.monotonic() > end:
                raise RunFailed("the rollout cannot be served; the log has the reason", "rollout")
            self.watch.check()
        return ServedRollout(server, json.loads(address.splitlines()[0])["url"], printed)

    def _variables(self, url: str, key: Secret, origin: str) -> dict[str, str]:
        """Return the environment of the trainer."""
        run_folder, run = self.children.run_folder, self.children.run
        config = run_folder.folder / "training.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps({"id": run_folder.folder.name, **run.submission}), "utf-8")
        found = {secret.name: secret.reveal() for secret in run.secrets}
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(_PASSED_ON_NOT)
        }
        return {
            **own,
            "OSMOSIS_ROLLOUT_SERVER_URL": url,
            "OSMOSIS_ROLLOUT_SERVER_KEY": key.reveal(),
            "OSMOSIS_TRAINER_ORIGIN": origin,
            "OSMOSIS_TRAINING_CONFIG": str(config),
            "OSMOSIS_TRAINING_DATASET": str(run.dataset),
            "OSMOSIS_TRAINING_FOLDER": str(run_folder.trained),
            "OSMOSIS_TRAINING_SECRETS": json.dumps(found),
        }

    def _train(
        self, started: ExitStack, variables: Mapping[str, str], server: ServedRollout
    ) -> int:
        """Run the trainer to its end; the server must continue as long."""
        run_folder = self.children.run_folder
        job = Job(
            self.trainer.words,
            run_folder.trained,
            variables,
            run_folder.output,
            lock=run_folder.trainer_lock,
            limits=JobLimits(file_bytes=None, open_files=None),
            grace_s=self.children.grace_s,
            orphan_grace_s=self.children.grace_s,
        )
        printed = self._following(started, job.output, "train")
        running = self._start(started, job)
        while (status := running.wait(_POLL_S)) is None:
            printed()
            server.follow()
            if server.running.wait(0) is not None:
                message = (
                    "the rollout's server has ended before the trainer; the log has the reason"
                )
                raise RunFailed(message, "rollout", status="crashed")
            self.watch.check()
        return status

    def _end(self, status: int) -> None:
        if status == 0:
            self.record.end("finished", "the trainer has ended", step="train")
        elif status > 128:
            message = f"the trainer was ended by signal {status - 128}"
            raise RunFailed(message, "train", status="killed")
        else:
            message = f"the trainer ended with exit status {status}; the log has its output"
            raise RunFailed(message, "train")

    def _start(self, started: ExitStack, job: Job) -> Running:
        """Start a program that is ended with the run."""
        running = self.executor.start(job)

        def end() -> None:
            running.stop()
            running.wait(job.grace_s + ENDING_S)

        started.callback(end)
        return running

    def _following(self, started: ExitStack, path: Path | None, step: str) -> Callable[[], None]:
        """Return what adds the new lines of a file to the log; at the end the rest too."""
        assert path is not None
        path.touch(mode=0o600)
        printed = TailedFile(path, path.stat().st_size)

        def add_rest() -> None:
            for lines in printed.rest():
                self.record.add_output(lines, step=step)
                if self.record.is_full:
                    break
            printed.mask(self.record.redact)

        def add_new() -> None:
            with self.watch.pass_over_errors():
                self.record.add_output(printed.lines(), step=step)

        started.callback(add_rest)
        return add_new


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
