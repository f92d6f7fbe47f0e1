"""The options that say how programs of users are held, and their values."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

import click

from osmosis_executors.confinement import PLACES, Confinement
from osmosis_executors.job import JobLimits, RunAs

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)i?B?", re.IGNORECASE)
_PROBE_S = 60


def as_bytes(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return the bytes of a size as 512M or 8G."""
    if text is None:
        return None
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]):
        raise click.BadParameter(f"{text!r} is no size; write it as 512M or 8G")
    return int(found[1]) * _UNITS[found[2].upper()]


def program(option: str, command: str) -> tuple[str, ...]:
    """Return the words of a command; raise UsageError where it cannot be started."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    name = words[0] if words else ""
    if (found := shutil.which(name)) is None:
        raise click.UsageError(f"{option}: there is no program {name!r}")
    return (os.path.abspath(found), *words[1:])  # it is started in another folder


def confinement(held: JobLimits, run_as: str | None, wrapper: str | None) -> Confinement:
    """Return how programs are held; raise UsageError for what cannot be."""
    words = () if wrapper is None else program("--wrapper", wrapper)
    found = Confinement(held, None if run_as is None else _user(run_as), words)
    if unknown := found.unknown_placeholders:
        raise click.UsageError(
            f"--wrapper: there is no {unknown[0]}; placeholders are {', '.join(PLACES)}"
        )
    return found


def _user(name: str) -> RunAs:
    """Return a user of this machine who can run our Python."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise click.UsageError(f"--run-as: this machine has no user {name}") from None
    if os.geteuid() != 0:
        raise click.UsageError("--run-as: only root can run programs as another user")
    if found.pw_uid == 0:
        raise click.UsageError("--run-as: name a user that is not root")
    user = RunAs(name, found.pw_uid, found.pw_gid)
    if not can_run(user, [sys.executable, "-c", "import pytest_osmosis"]):
        raise click.UsageError(
            f"--run-as: {name} cannot run {sys.executable} with this package; install the platform "
            "where that user can read it"
        )
    return user


def can_run(user: RunAs, words: Sequence[str]) -> bool:
    """Return whether a program succeeds as another user."""
    try:
        ended = subprocess.run(
            words,
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            cwd="/",
            env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


OPTIONS = (
    click.option(
        "--limit-memory",
        metavar="SIZE",
        callback=as_bytes,
        help="Address space of each process of a run, as 8G; by default without limit.",
    ),
    click.option(
        "--limit-cpu-time",
        metavar="SECONDS",
        type=click.IntRange(1),
        help="Processor time of each process of a run; by default without limit.",
    ),
    click.option(
        "--limit-processes",
        metavar="N",
        type=click.IntRange(1),
        help="Processes and threads of the user that runs belong to, all runs together; best with "
        "--run-as. By default without limit.",
    ),
    click.option(
        "--limit-open-files",
        metavar="N",
        type=click.IntRange(64),
        default=4096,
        show_default=True,
        help="Open files of each process of a run.",
    ),
    click.option(
        "--limit-file-size",
        metavar="SIZE",
        callback=as_bytes,
        default="1G",
        show_default=True,
        help="Each file that a run writes.",
    ),
    click.option(
        "--run-as",
        metavar="USER",
        help="Run the code of users as another user of this machine, who cannot read the "
        "platform's data; needs root.",
    ),
    click.option(
        "--wrapper",
        metavar="COMMAND",
        help="A command that is put before every program of a run, as a sandbox or a container "
        "runtime; {data}, {room}, {environment} and {folder} in it are folders.",
    ),
)
