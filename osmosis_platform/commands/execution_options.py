"""The options of `osmosis platform serve` that say how runs are executed.

One decorator gathers them in one value, `Executing`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from osmosis_executors.choice import EXECUTORS, NoExecutor, choose_executor
from osmosis_executors.job import JobLimits

from . import confinement_options
from .options import gathered

if TYPE_CHECKING:
    from osmosis_executors.confinement import Confinement
    from osmosis_executors.job import Executor, RunAs

    from ..environments.recipe import BuildSettings
    from ..execution.services import Trainer


@dataclass(frozen=True, slots=True)
class Chosen:
    """What executes runs, and how their programs are held."""

    executor: Executor
    confinement: Confinement
    builds: BuildSettings | None
    """None: every rollout runs in the platform's own environment."""
    trainer: Trainer | None
    """None: training runs are refused."""


@dataclass(frozen=True, slots=True)
class Executing:
    """What was given; each field is an option."""

    max_runs: int
    executor: str
    ray_address: str | None
    ray_shards: int | None
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

    def _trainer(self) -> Trainer | None:
        from osmosis_ai.rollout_server.trainer.address_policy import check_origin

        from ..execution.services import Trainer

        if self.trainer is None:
            if self.trainer_origin:
                raise click.UsageError("--trainer-origin is for --trainer")
            return None
        words = confinement_options.program("--trainer", self.trainer)
        try:
            return Trainer(words, tuple(map(check_origin, self.trainer_origin)))
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
            return choose_executor(
                self.executor, ray_address=self.ray_address, ray_shards=self.ray_shards
            )
        except NoExecutor as error:
            raise click.UsageError(str(error)) from None

    def _builds(self, user: RunAs | None) -> BuildSettings | None:
        from ..environments.recipe import BuildSettings

        if not self.build:
            return None
        uv = shutil.which("uv")
        if uv and user and not confinement_options.can_run(user, [uv, "--version"]):
            uv = None
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
        type=click.Choice(EXECUTORS),
        default="local",
        show_default=True,
        help="What runs evaluations: child processes of this machine, or a Ray cluster.",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="The cluster of --executor ray, as its driver knows it; by default that of "
        "RAY_ADDRESS, else each evaluation starts one on this machine.",
    ),
    click.option(
        "--ray-shards",
        metavar="K",
        type=click.IntRange(1),
        help="Processes of one evaluation on the cluster, at most one for each of its batch size; "
        "by default as many as there is room for.",
    ),
    click.option(
        "--build/--no-build",
        default=True,
        show_default=True,
        help="Build each rollout's environment from its pyproject.toml, with uv where it is "
        "installed; or run all in the platform's own.",
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
        help="The package index; by default that of uv or pip.",
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


execution_options = gathered("executing", Executing, _OPTIONS)
"""Give a command these options, as `executing`."""
