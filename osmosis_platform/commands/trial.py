"""`osmosis platform try`: a platform for the work tree here, with everything that it takes."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import json_option, needs_extra
from .place import data_home
from .serve import port_option, release_streams, serve_command

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from ..database.connection import Database
    from ..database.models import User, Workspace

_USER = "me"
_TOKEN_NAME = "osmosis platform try"
_TOKEN_S = 90 * 86_400


@dataclass(frozen=True, slots=True)
class PlatformTrial:
    """What is tried, and where its platform has its data."""

    root: Path
    """Of the work tree."""
    repository: str
    data: Path

    @property
    def password_file(self) -> Path:
        """The file with the password of the user."""
        return self.data / "password"


@click.command("try")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The platform's folder; by default osmosis/try in the user's data folder.",
)
@port_option
@json_option
@needs_extra
@click.pass_context
def try_command(ctx: click.Context, data: Path | None, port: int, as_json: bool) -> None:
    """Try a platform on this machine, for the work tree here.

    Serves one until Ctrl-C, with a user and a workspace that is cloned from this folder, and logs
    the osmosis command in. Nothing has to be pushed. The next time the same data serve again.

    \b
    Example:
      cd agents && osmosis platform try
    """
    trial = _trial(data or data_home() / "try")
    words = ["--data", str(trial.data), "--port", str(port), *(["--json"] if as_json else [])]
    with serve_command.make_context("serve", words, parent=ctx) as inner:
        assert serve_command.callback is not None
        here = {"database": None, "database_password_file": None}  # none of the environment's

        def announce(url: str, database: Database) -> None:
            _announce(trial, url, database, as_json=as_json)

        inner.invoke(serve_command.callback, **inner.params | here, announce=announce)


def _trial(data: Path) -> PlatformTrial:
    from osmosis_ai.platform.git import read_repository
    from osmosis_ai.platform.git_command import GitError
    from osmosis_ai.platform.workspace import WorkspaceError, find_root

    try:
        root = find_root(Path.cwd())
        return PlatformTrial(root, read_repository(root), data.absolute())
    except WorkspaceError as error:
        no_origin = isinstance(error, GitError) and error.code == "git_no_origin"
        more = " (nothing has to be there)" if no_origin else ""
        raise click.ClickException(f"{error}{more}") from None


def _announce(trial: PlatformTrial, url: str, database: Database, *, as_json: bool) -> None:
    """Make accounts, and log the command in as soon as the platform answers."""
    with database.writing() as session:
        user, workspace, token = _accounts(session, trial)
    facts = {
        "url": url,
        "data": str(trial.data),
        "user": user.name,
        "password_file": str(trial.password_file),
        "workspace": workspace.name,
        "repository": workspace.repository,
        "clone_folder": workspace.clone_url,
    }
    if as_json:
        release_streams()
    else:
        click.echo(f"The platform is at {url}, its data in {trial.data}. Ctrl-C ends it.")

    def log_in() -> None:
        problem = _log_in(url, token)
        if as_json:
            click.echo(json.dumps({**facts, "logged_in": not problem}))
        else:
            click.echo("\n".join(_next_steps(trial, facts, problem)))
        sys.stdout.flush()

    threading.Thread(target=log_in, name="osmosis-login", daemon=True).start()


def _accounts(session: Session, trial: PlatformTrial) -> tuple[User, Workspace, str]:
    """Return user, workspace and a new token, which replaces that of the last time."""
    from sqlalchemy import select

    from ..accounts import registry, tokens
    from ..accounts.registry import check_clone_url
    from ..database.models import Token, User, Workspace

    password = _password(trial.password_file)
    user = session.scalar(select(User).where(User.name == _USER))
    if user is None:
        user = registry.add_user(session, _USER, password=password)
    here = Workspace.repository == trial.repository
    workspace = session.scalar(select(Workspace).where(here))
    if workspace is None:
        name = trial.repository.replace("/", "-")[:63]
        workspace = registry.add_workspace(session, name, trial.repository)
    workspace.clone_url = check_clone_url(str(trial.root))
    registry.add_member(session, workspace, user, "owner")
    last = (Token.user_id == user.id, Token.workspace_id == workspace.id)
    for token in tokens.serving_tokens(session, *last, Token.label == _TOKEN_NAME):
        tokens.revoke(session, user.id, token.id)
    _, text = tokens.issue(session, user.id, workspace.id, label=_TOKEN_NAME, expires_s=_TOKEN_S)
    return user, workspace, text


def _password(file: Path) -> str:
    """Return the password in a file, which is made for its owner alone where it is not there."""
    if not file.exists():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
            made.write(f"{secrets.token_urlsafe(12)}\n")
    return file.read_text("ascii").strip()


def _log_in(url: str, token: str) -> str:
    """Log the osmosis command in at the platform; return what went wrong, empty for nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "osmosis_cli", "login", "--token", "-"],
        env={**os.environ, "OSMOSIS_PLATFORM_URL": url},
        input=token,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def _next_steps(trial: PlatformTrial, facts: dict[str, str | None], problem: str) -> Sequence[str]:
    who = f"{facts['user']} owns its workspace {facts['workspace']}"
    login = f"  osmosis login                         # {problem}"
    return [
        f"{who}, which is cloned from {trial.root}: what is committed there runs.",
        f"To see its pages log in as {facts['user']}: cat {trial.password_file}",
        "Next, in another terminal:",
        f"  export OSMOSIS_PLATFORM_URL={facts['url']}",
        *([login] if problem else []),
        "  osmosis dataset upload datasets/NAME.jsonl",
        "  osmosis eval submit configs/eval/NAME.toml",
    ]
