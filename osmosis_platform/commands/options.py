"""What the commands share: options, how they are gathered, and what is printed."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

import click

NEEDED = ("alembic", "cryptography", "sqlalchemy", "starlette", "uvicorn")
F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def gathered(
    name: str, make: Callable[..., Any], options: Sequence[Callable[[Any], Any]]
) -> Callable[[F], F]:
    """Return what gives a command options, and what `make` makes of their values as one value."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_value(*args: Any, **values: Any) -> Any:
            given = {option.name: values.pop(option.name) for option in ours}
            return function(*args, **{name: make(**given)}, **values)

        count = len(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            with_value = option(with_value)
        ours: list[click.Parameter] = with_value.__click_params__[count:]  # type: ignore[attr-defined]
        return with_value  # type: ignore[return-value]

    return decorate


def needs_extra(function: F) -> F:
    """Say how to install the extra where it is missing."""

    @functools.wraps(function)
    def checked(*args: Any, **values: Any) -> Any:
        if not all(map(find_spec, NEEDED)):
            raise click.ClickException(
                "osmosis platform needs an extra: pip install 'pytest-osmosis[platform]'"
            )
        return function(*args, **values)

    return checked  # type: ignore[return-value]


def show(document: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print what was done."""
    click.echo(json.dumps(document) if as_json else sentence)


def show_list(
    name: str,
    found: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[str]],
    *,
    none: str,
    as_json: bool,
) -> None:
    """Print what there is: a document, or a table whose first row is the header."""
    from pytest_osmosis.escaping import escape_control_chars
    from pytest_osmosis.reports.text_table import columns, table

    if as_json:
        click.echo(json.dumps({name: found, "total_count": len(found)}))
    elif not found:
        click.echo(none)
    else:
        shown = [[escape_control_chars(cell) for cell in row] for row in rows]
        for line in table(shown, columns()):
            click.echo(line)


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Refuse a question that cannot be asked, before anything is looked up."""
    if not yes and (as_json or not sys.stdin.isatty()):
        why = "--json asks no question" if as_json else "there is no terminal to ask on"
        raise click.UsageError(f"{why}: give --yes")


def ask(question: str, *, yes: bool, as_json: bool) -> None:
    """Return where it is to be done; end the command otherwise."""
    may_ask(yes=yes, as_json=as_json)
    if not yes:
        click.confirm(question, abort=True, err=True)
