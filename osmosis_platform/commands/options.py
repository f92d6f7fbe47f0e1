"""What the commands share: `--json`, and a sentence where the extra is missing."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar

import click

NEEDED = ("alembic", "cryptography", "prometheus_client", "sqlalchemy", "starlette", "uvicorn")
F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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
