"""`osmosis platform token`: the keys by which programs and the command are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..identifiers import timestamp
from .options import ask, show, show_list, yes_option
from .place import DataPlace, changing, looking, place_options

if TYPE_CHECKING:
    from ..database.models import Token


def _checked_name(context: click.Context, option: click.Parameter, name: str) -> str:
    from ..accounts.tokens import is_label

    if not is_label(name):
        raise click.BadParameter("a name has 1 to 100 printable characters")
    return name


@click.group("token")
def token_group() -> None:
    """Create, list and revoke tokens.

    \b
    Examples:
      osmosis platform token create ann --workspace agents
      osmosis platform token list
    """


@token_group.command("list")
@click.option("--user", metavar="NAME", help="Only those of a user.")
@click.option("--workspace", metavar="NAME", help="Only those for a workspace.")
@place_options
def list_tokens(user: str | None, workspace: str | None, place: DataPlace, as_json: bool) -> None:
    """List the ids of the tokens that serve.

    \b
    Examples:
      osmosis platform token list
      osmosis platform token list --user ann
    """
    from ..accounts import registry, tokens
    from ..database.models import Token

    with looking(place) as session:
        wanted = []
        if user is not None:
            wanted.append(Token.user_id == registry.find_user(session, user).id)
        if workspace is not None:
            wanted.append(Token.workspace_id == registry.find_workspace(session, workspace).id)
        found = tokens.serving_tokens(session, *wanted)
        documents = [_document(token) for token in found]
    rows = [("id", "name", "user", "workspace", "last used", "until")]
    for token, each in zip(found, documents, strict=True):
        used = "never" if token.last_used_at is None else f"{token.last_used_at:%Y-%m-%d}"
        until = f"{token.expires_at:%Y-%m-%d}"
        where = each["workspace"] or ""
        rows.append((token.id, token.label, token.user.name, where, used, until))
    show_list("tokens", documents, rows, none="no token serves", as_json=as_json)


@token_group.command("create")
@click.argument("user")
@click.option(
    "--workspace",
    metavar="NAME",
    help="The workspace in which the token serves; needed where the user is in several.",
)
@click.option(
    "--name",
    metavar="NAME",
    default="made by the operator",
    show_default=True,
    callback=_checked_name,
    help="What the token is called in lists.",
)
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, 3650),
    default=90,
    show_default=True,
    metavar="DAYS",
    help="How long it serves.",
)
@place_options
def create_token(
    user: str,
    workspace: str | None,
    name: str,
    expires_in_days: int,
    place: DataPlace,
    as_json: bool,
) -> None:
    """Create a token and print it, this once.

    Standard output has the token alone.

    \b
    Example:
      osmosis platform token create ann --name nightly > token.txt
    """
    from ..accounts import registry, tokens

    with changing(place) as session:
        owner = registry.find_user(session, user)
        home = registry.choose_workspace(session, owner, workspace)
        token, text = tokens.issue(
            session, owner.id, home.id, label=name, expires_s=expires_in_days * 86_400
        )
    document = {
        "token": text,
        "token_id": token.id,
        "name": name,
        "user": user,
        "workspace": home.name,
        "expires_at": timestamp(token.expires_at),
    }
    if not as_json:
        until = f"{token.expires_at:%Y-%m-%d}"
        click.echo(
            f"The token of {user} in {home.name}, until {until}. It is shown only now:", err=True
        )
    show(document, text, as_json=as_json)


@token_group.command("revoke")
@click.argument("token_id", metavar="[ID]", required=False)
@click.option(
    "--user", metavar="NAME", help="All tokens of a user, whose browsers are logged out too."
)
@yes_option
@place_options
def revoke_token(
    token_id: str | None, user: str | None, yes: bool, place: DataPlace, as_json: bool
) -> None:
    """Revoke a token by its id, or all of a user.

    \b
    Examples:
      osmosis platform token revoke 0a1b2c3d4e5f60718293a4b5c6d7e8f9
      osmosis platform token revoke --user ann
    """
    from ..accounts import browsers, registry, tokens

    if (token_id is None) == (user is None):
        raise click.UsageError("give the ID of a token, or --user; `token list` shows the ids")
    what = f"all tokens of {user}" if user is not None else f"the token {token_id}"
    ask(f"Revoke {what}?", yes=yes, as_json=as_json)
    with changing(place) as session:
        if user is not None:
            owner = registry.find_user(session, user)
            count = tokens.revoke_all(session, owner.id)
            browsers.end_all(session, owner.id)
        elif token_id is not None:
            tokens.revoke_by_operator(session, token_id)
            count = 1
    document = {"id": token_id, "user": user, "revoked": count}
    plural = "token" if count == 1 else "tokens"
    show(document, f"Revoked {count} {plural}.", as_json=as_json)


def _document(token: Token) -> dict[str, str | None]:
    return {
        "id": token.id,
        "user": token.user.name,
        "workspace": token.workspace.name if token.workspace else None,
        "name": token.label,
        "created_at": timestamp(token.created_at),
        "last_used_at": timestamp(token.last_used_at),
        "expires_at": timestamp(token.expires_at),
    }
