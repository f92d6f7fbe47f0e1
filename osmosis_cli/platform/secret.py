"""`osmosis secret`: values that runs on the platform find in their environment.

A value comes from a hidden prompt, a file or standard input, and is never shown.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from osmosis_ai.secret import Secret

from ..lazy_group import Entry, LazyGroup
from ..shared_options import json_option, print_json

LIMIT = 128 * 1024
"""What one environment variable may hold."""


@dataclass(frozen=True, slots=True)
class GivenValue:
    """What is asked for, in the words of the errors."""

    noun: str
    option: str
    instead: str
    """What to do where it cannot be asked for."""


def read_value(what: GivenValue, file: Path | None) -> str:
    """Return the value, from a file or from standard input, without one newline at its end.

    A terminal is asked without showing what is typed. Says when a newline was removed; raises a
    usage error that has nothing of the value.
    """
    if file is None and sys.stdin.isatty():
        return str(click.prompt(what.noun.capitalize(), hide_input=True, err=True))
    try:
        with nullcontext(sys.stdin.buffer) if file is None else file.open("rb") as stream:
            content = stream.read(LIMIT + 1)
    except OSError as error:
        # The name is not shown: it may be the value.
        raise click.UsageError(f"{what.option} names no file to read: {error.strerror}") from None
    if len(content) > LIMIT:
        raise click.UsageError(f"the {what.noun} is longer than {LIMIT // 1024} kB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError(f"the {what.noun} is not UTF-8") from None
    value = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if not value:
        raise click.UsageError(f"the {what.noun} is empty: {what.instead}")
    if value != text:
        click.echo(f"one newline at the end of the {what.noun} was removed", err=True)
    return value


EPILOG = """\b
Examples:
  osmosis secret set OPENAI_API_KEY
  osmosis secret set OPENAI_API_KEY --value-file key.txt --scope workspace
  osmosis secret list
"""
SET_EPILOG = """\b
Examples:
  osmosis secret set OPENAI_API_KEY
  osmosis secret set OPENAI_API_KEY --value-file - < key.txt
"""
_HEADER = ("name", "scope", "changed", "set by")
_VALUE = GivenValue(
    "value",
    "--value-file",
    "type it at the prompt, or give it with --value-file FILE or on standard input",
)

secret_group = LazyGroup(
    "secret",
    table={
        "set": Entry("platform.secret:secret_set", "Store a secret, or replace its value."),
        "list": Entry("platform.secret:secret_list", "List their names."),
        "delete": Entry("platform.secret:secret_delete", "Delete one."),
    },
    help="Look after the secrets that runs on the platform find in their environment.",
    epilog=EPILOG,
)

scope_option = click.option(
    "--scope",
    type=click.Choice(["personal", "workspace"]),
    default="personal",
    show_default=True,
    help="For your runs, or for those of all members.",
)


class _NameOnly(click.Command):
    """A command that takes one name, and never shows what else is given: it may be a value."""

    allow_extra_args = True
    ignore_unknown_options = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse further arguments and unknown options."""
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(
                f"{ctx.command_path} takes one NAME and the options in its help; what is given "
                "besides is not shown here, since it may be a secret. A value is typed at the "
                "prompt, or given with --value-file or on standard input",
                ctx,
            )
        return rest


def _checked_name(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    from osmosis_ai.platform.config_models import SECRET_NAME

    if ctx.resilient_parsing or SECRET_NAME.fullmatch(name):
        return name
    # It is not shown: it may be the value.
    if name.startswith("-"):
        raise click.UsageError("there is no such option; what was given is not shown here")
    raise click.UsageError(
        "NAME must be capital letters, digits and underscores, the first one a letter, such as "
        "OPENAI_API_KEY"
    )


name_argument = click.argument("name", metavar="NAME", callback=_checked_name)


@click.command("set", cls=_NameOnly, epilog=SET_EPILOG)
@name_argument
@click.option(
    "--value-file",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the value from a file; with - from standard input.",
)
@scope_option
@json_option
def secret_set(*, name: str, value_file: Path | None, scope: str, as_json: bool) -> None:
    """Store a secret, or replace its value.

    Asks for the value without showing it; without a terminal it is read from standard input. One
    newline at its end is removed. A personal secret beats one of the workspace.
    """
    from osmosis_ai.platform.environment_secrets import set_secret

    from .connection import connect

    with connect() as client:
        value = read_value(_VALUE, None if str(value_file) == "-" else value_file)
        if "\0" in value:
            raise click.UsageError("the value has a NUL character, which no environment can hold")
        stored = set_secret(client, name, Secret(value, name), scope)
    if as_json:
        document = {"name": name, "scope": scope, "updated_at": stored.get("updated_at")}
        print_json(document)
        return
    click.echo(f"the {scope} secret {name} is set")


@click.command("list", epilog="\b\nExample:\n  osmosis secret list --json\n")
@json_option
def secret_list(as_json: bool) -> None:
    """List the secrets that your runs in this workspace find: names, and never values."""
    from osmosis_ai.platform.answers import text_of
    from osmosis_ai.platform.environment_secrets import list_secrets, shown_scope

    from ..eval.lines import say_table
    from .connection import connect
    from .run_text import age, render, utc_now

    with connect() as client:
        found = list_secrets(client).items
    if as_json:
        listed = [{**secret, "scope": shown_scope(secret)} for secret in found]
        print_json({"secrets": listed, "total_count": len(listed)})
        return
    if not found:
        click.echo("there are no secrets here; set one: osmosis secret set NAME")
        return
    now = utc_now()
    rows = [
        (
            render(text_of(secret, "name")),
            shown_scope(secret),
            age(text_of(secret, "updated_at") or text_of(secret, "created_at"), now),
            render(text_of(secret, "creator_name")),
        )
        for secret in found
    ]
    say_table([_HEADER, *rows])


@click.command(
    "delete", cls=_NameOnly, epilog="\b\nExample:\n  osmosis secret delete OPENAI_API_KEY\n"
)
@name_argument
@scope_option
@json_option
def secret_delete(*, name: str, scope: str, as_json: bool) -> None:
    """Delete a secret; runs that have started keep it."""
    from osmosis_ai.platform.environment_secrets import delete_secret

    from .connection import connect

    with connect() as client:
        delete_secret(client, name, scope)
    if as_json:
        print_json({"name": name, "scope": scope, "deleted": True})
        return
    click.echo(f"the {scope} secret {name} is deleted")
