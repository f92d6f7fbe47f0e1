"""`osmosis doctor`: this installation, the workspace around here, the login, on one page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from osmosis_ai.platform.run_kinds import KINDS

from ..errors import CommandDone, CommandError
from ..eval.lines import say
from ..shared_options import json_option, print_json

PACKAGES = ("pytest-osmosis", "pytest", "pytest-xdist", "litellm", "pydantic")
EPILOG = """\b
Example:
  osmosis doctor
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the page."""

    about: str
    """What was looked at."""
    state: str
    """What is there, or what is wrong with it and what to do."""
    is_problem: bool = False


@click.command("doctor", epilog=EPILOG)
@json_option
def doctor_command(as_json: bool) -> None:
    """Look at versions, workspace, config files, login and platform, and say what is wrong.

    Status 1 where something is. It changes nothing, and asks the platform only who you are.
    """
    findings = [finding for look in LOOKS for finding in look()]
    problems = sum(finding.is_problem for finding in findings)
    if as_json:
        print_json(
            {
                "findings": [
                    {"about": one.about, "state": one.state, "problem": one.is_problem}
                    for one in findings
                ],
                "problems": problems,
            }
        )
    else:
        width = max(len(finding.about) for finding in findings)
        for finding in findings:
            mark = "!" if finding.is_problem else " "
            indented = finding.state.replace("\n", f"\n{'':{width + 4}}")
            say(f"{mark} {finding.about:{width}}  {indented}")
    if problems:
        raise CommandDone(1)


def _versions() -> Iterator[Finding]:
    found = [f"Python {sys.version.split()[0]}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} is not installed")
    yield Finding("versions", ", ".join(found))
    from osmosis_ai._conflict import conflicting_distribution

    if conflict := conflicting_distribution():
        yield Finding("versions", conflict, is_problem=True)


def _workspace() -> Iterator[Finding]:
    from osmosis_ai.platform.git import read_repository
    from osmosis_ai.platform.workspace import ROLLOUTS, WorkspaceError, find_root

    try:
        root = find_root(Path.cwd())
        repository = read_repository(root)
    except WorkspaceError as error:
        yield Finding("workspace", str(error), is_problem=True)
        return
    yield Finding("workspace", f"{root} ({repository})")
    if not (root / ROLLOUTS).is_dir():
        state = f"there is no {ROLLOUTS}/: run `osmosis workspace init`"
        yield Finding("rollouts", state, is_problem=True)


def _config_files() -> Iterator[Finding]:
    from osmosis_ai.platform.config_file import ConfigError, load_config
    from osmosis_ai.platform.config_models import CONFIGS
    from osmosis_ai.platform.workspace import WorkspaceError, find_root

    try:
        root = find_root(Path.cwd())
    except WorkspaceError:
        return
    for kind in KINDS:
        for path in sorted((root / kind.folder).glob("*.toml")):
            try:
                load_config(CONFIGS[kind], path)
            except ConfigError as error:
                yield Finding("config", str(error), is_problem=True)
            else:
                yield Finding("config", f"{path.relative_to(root)}: valid")


def _login() -> Iterator[Finding]:
    from osmosis_ai.platform.account import verify

    from .account import render_user, render_workspace
    from .connection import active_login, client_of

    try:
        login = active_login()
        with client_of(login.platform_url, login.token) as client:
            identity = verify(client)
    except CommandError as error:
        yield Finding("login", str(error), is_problem=True)
        return
    who = f"{render_user(identity.user)}, {render_workspace(identity.workspace, identity.role)}"
    yield Finding("login", f"{who} at {login.platform_url}")


LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _versions,
    _workspace,
    _config_files,
    _login,
)
