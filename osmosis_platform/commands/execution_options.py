"""The options of `osmosis platform serve` that say how runs are executed.

One decorator gathers them in one value, `Executing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from osmosis_executors.job import JobLimits
from osmosis_executors.table import EXECUTOR_OPTIONS, EXECUTORS, NoExecutor, choose_executor

from . import confinement_options
from .options import gathered

if TYPE_CHECKING:
    from osmosis_executors.confinement import Confinement
    from osmosis_executors.job import Executor, RunAs

    from ..environments.recipe import BuildSettings
    from ..execution.services import TrainerCommand


@dataclass(frozen=True, slots=True)
class Executing:
    """How runs are executed."""

    max_runs: int
    max_user_runs: int | None
    max_upload: int
    keep_runs: int
    executor: Executor
    confinement: Confinement
    builds: BuildSettings | None
    """None: every rollout runs in the platform's own environment."""
    trainer: TrainerCommand | None
    """None: training runs are refused."""


def _executing(**given: Any) -> Executing:
    """Return what the options mean; raise UsageError for what cannot be used here."""
    limits = JobLimits(
        file_bytes=given["limit_file_size"],
        memory_bytes=given["limit_memory"],
        open_files=given["limit_open_files"],
        cpu_s=given["limit_cpu_time"],
        processes=given["limit_processes"],
    )
    held = confinement_options.confinement(limits, given["run_as"], given["wrapper"])
    try:
        executor = choose_executor(
            given["executor"], {option.field: given[option.field] for option in EXECUTOR_OPTIONS}
        )
    except NoExecutor as error:
        raise click.UsageError(str(error)) from None
    kept = ("max_runs", "max_user_runs", "max_upload", "keep_runs")
    return Executing(
        **{name: given[name] for name in kept},
        executor=executor,
        confinement=held,
        builds=_builds(given, held.user) if given["build"] else None,
        trainer=_trainer(given["trainer"], given["trainer_origin"]),
    )


def _trainer(command: str | None, origins: tuple[str, ...]) -> TrainerCommand | None:
    from osmosis_ai.rollout_server.trainer.address_policy import check_origin

    from ..execution.services import TrainerCommand

    if command is None:
        if origins:
            raise click.UsageError("--trainer-origin is for --trainer")
        return None
    words = confinement_options.program("--trainer", command)
    try:
        return TrainerCommand(words, tuple(map(check_origin, origins)))
    except ValueError as error:
        raise click.UsageError(f"--trainer-origin: {error}") from None


def _builds(given: dict[str, Any], user: RunAs | None) -> BuildSettings:
    from ..environments.recipe import BuildSettings

    settings = BuildSettings(
        find_links=tuple(folder.absolute() for folder in given["find_links"]),
        use_index=not given["no_index"],
        index_url=given["index_url"],
    )
    if user and not confinement_options.can_run(user, [settings.uv, "--version"]):
        raise click.UsageError(f"--run-as: {user.name} cannot run {settings.uv}")
    return settings


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


execution_options = gathered("executing", _executing, _OPTIONS)
"""Give a command these options, as `executing`."""
