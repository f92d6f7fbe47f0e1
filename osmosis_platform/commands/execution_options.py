"""The options of `osmosis platform serve` that say how runs are executed.

One decorator gathers them in one value, `Executing`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from osmosis_executors.choice import EXECUTOR_OPTIONS, EXECUTORS, NoExecutor, choose_executor
from osmosis_executors.job import JobLimits

from . import confinement_options
from .options import gathered

if TYPE_CHECKING:
    from osmosis_executors.confinement import Confinement
    from osmosis_executors.job import Executor, RunAs

    from ..environments.recipe import BuildSettings
    from ..execution.services import TrainerCommand


@dataclass(frozen=True, slots=True)
class Chosen:
    """What executes runs, and how their programs are held."""

    executor: Executor
    confinement: Confinement
    builds: BuildSettings | None
    """None: every rollout runs in the platform's own environment."""
    trainer: TrainerCommand | None
    """None: training runs are refused."""


@dataclass(frozen=True, slots=True)
class Executing:
    """What was given; each field is an option."""

    max_runs: int
    executor: str
    executor_values: Mapping[str, Any]
    """Of the executors' own options."""
    build: bool
    find_links: tuple[Path, ...]
    no_index: bool
    index_url: str | None
    limit_memory: int | None
    limit_cpu_time: int | None
    limit_processes: int | None
    limit_open_files: int
    limit_file_size: int
    run_as: str | None
    wrapper: str | None
    trainer: str | None
    trainer_origin: tuple[str, ...]
    max_user_runs: int | None
    max_upload: int
    keep_runs: int

    def choose(self) -> Chosen:
        """Return what the options mean; raise UsageError for what cannot be used here."""
        held = self._confinement()
        return Chosen(self._executor(), held, self._builds(held.user), self._trainer())

    def _trainer(self) -> TrainerCommand | None:
        from osmosis_ai.rollout_server.trainer.address_policy import check_origin

        from ..execution.services import TrainerCommand

        if self.trainer is None:
            if self.trainer_origin:
                raise click.UsageError("--trainer-origin is for --trainer")
            return None
        words = confinement_options.program("--trainer", self.trainer)
        try:
            return TrainerCommand(words, tuple(map(check_origin, self.trainer_origin)))
        except ValueError as error:
            raise click.UsageError(f"--trainer-origin: {error}") from None

    def _confinement(self) -> Confinement:
        held = JobLimits(
            file_bytes=self.limit_file_size,
            memory_bytes=self.limit_memory,
            open_files=self.limit_open_files,
            cpu_s=self.limit_cpu_time,
            processes=self.limit_processes,
        )
        return confinement_options.confinement(held, self.run_as, self.wrapper)

    def _executor(self) -> Executor:
        try:
            return choose_executor(self.executor, self.executor_values)
        except NoExecutor as error:
            raise click.UsageError(str(error)) from None

    def _builds(self, user: RunAs | None) -> BuildSettings | None:
        from ..environments.recipe import BuildSettings

        if not self.build:
            return None
        beside = os.path.dirname(sys.executable)
        uv = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
        if uv and user and not confinement_options.can_run(user, [uv, "--version"]):
            raise click.UsageError(f"--run-as: {user.name} cannot run {uv}")
        return BuildSettings(
            find_links=tuple(folder.absolute() for folder in self.find_links),
            use_index=not self.no_index,
            index_url=self.index_url,
            uv=uv,
        )


def _checked_index(context: click.Context, option: click.Parameter, url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.BadParameter("must be https://HOST/... or http://HOST/...")
    if parts.username is not None or parts.password is not None:
        raise click.BadParameter(
            "must hold no user and no password: the code of a build could read them"
        )
    return url


_OPTIONS = (
    click.option(
        "--max-runs",
        metavar="N",
        type=click.IntRange(0, 1000),
        default=2,
        show_default=True,
        help="Evaluations executed at once; 0 executes none, and records them.",
    ),
    click.option(
        "--max-user-runs",
        metavar="N",
        type=click.IntRange(1),
        help="Runs of a user executed at once; others wait. By default as many as --max-runs.",
    ),
    click.option(
        "--max-upload",
        metavar="SIZE",
        callback=confinement_options.as_bytes,
        default="5G",
        show_default=True,
        help="The largest dataset that is taken.",
    ),
    click.option(
        "--keep-runs",
        metavar="DAYS",
        type=click.IntRange(0),
        default=30,
        show_default=True,
        help="How long journals, conversations and outputs of runs that have ended are kept, and "
        "an hour; their reports and logs stay.",
    ),
    click.option(
        "--executor",
        type=click.Choice([*EXECUTORS]),
        default="local",
        show_default=True,
        help=f"What runs evaluations: {', or '.join(kind.title for kind in EXECUTORS.values())}.",
    ),
    *(
        click.option(
            f"--{option.name}",
            metavar=option.metavar,
            type=click.IntRange(1) if option.is_count else str,
            help=option.help,
        )
        for option in EXECUTOR_OPTIONS
    ),
    click.option(
        "--build/--no-build",
        default=True,
        show_default=True,
        help="Build each rollout's environment from its pyproject.toml, with uv; or run all in the "
        "platform's own.",
    ),
    click.option(
        "--find-links",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="A folder of wheels for these environments; may be given more than once.",
    ),
    click.option("--no-index", is_flag=True, help="Take packages from --find-links alone."),
    click.option(
        "--index-url",
        metavar="URL",
        callback=_checked_index,
        help="The package index; by default that of uv.",
    ),
    *confinement_options.OPTIONS,
    click.option(
        "--trainer",
        metavar="COMMAND",
        help="The program that executes training runs; what it is to train is in its environment. "
        "By default training runs are refused.",
    ),
    click.option(
        "--trainer-origin",
        metavar="ORIGIN",
        multiple=True,
        help="Where the trainer serves generation, as http://10.0.0.7:8000; by default a free port "
        "of this machine, which it finds in its environment.",
    ),
)


_OF_EXECUTORS = [option.field for option in EXECUTOR_OPTIONS]


def _executing(**given: Any) -> Executing:
    values = {name: given.pop(name) for name in _OF_EXECUTORS}
    return Executing(executor_values=values, **given)


_FIELDS = [each.name for each in fields(Executing) if each.name != "executor_values"]
execution_options = gathered("executing", _executing, _OPTIONS, names=[*_FIELDS, *_OF_EXECUTORS])
"""Give a command these options, as `executing`."""
