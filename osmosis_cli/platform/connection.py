"""The platform that commands talk to, as whom, and its errors as errors of a command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ..credentials.login import Login, LoginProblem, platform_url
from ..credentials.store import find_login
from ..errors import CommandError, command_errors

if TYPE_CHECKING:
    from osmosis_ai.platform.client import Limits, PlatformClient
    from osmosis_ai.secret import Secret

LIMITS: Limits | None = None
"""Of every client; None for the usual ones."""


@contextmanager
def connect(repository: str | None = None) -> Iterator[PlatformClient]:
    """A client with the user's login, for a repository; None: that of the current directory.

    Raise CommandError without a login, and for every PlatformError inside.
    """
    login = active_login()
    identity = repository or workspace_repository()
    with client_of(login.platform_url, login.token, git_identity=identity) as client:
        yield client


@contextmanager
def client_of(
    platform: str, token: Secret | None, *, git_identity: str | None = None
) -> Iterator[PlatformClient]:
    """A client of a platform, whose errors become CommandErrors."""
    from osmosis_ai.platform.client import PlatformClient, PlatformError

    try:
        with PlatformClient(
            platform,
            token=token,
            git_identity=git_identity,
            version=version("pytest-osmosis"),
            limits=LIMITS,
        ) as client:
            yield client
    except PlatformError as error:
        raise CommandError(str(error), code=error.code, details=error.document()) from None


login_problems = partial(command_errors, LoginProblem, code="login")
"""A context manager: what makes a login unusable becomes a CommandError."""


def active_login() -> Login:
    """Return the login that is used; raise CommandError without one."""
    with login_problems():
        platform, login = platform_url(os.environ), find_login()
    if login is None:
        raise CommandError(
            f"you are not logged in at {platform}: run `osmosis login`", code="login"
        )
    return login


def workspace_repository() -> str:
    """Return the `owner/repo` of the work tree around the current directory, or CommandError."""
    from osmosis_ai.platform.git import read_repository
    from osmosis_ai.platform.workspace import WorkspaceError

    with command_errors(WorkspaceError):
        return read_repository(Path.cwd())
