"""What `osmosis platform serve` lets an operator see: the log, and who reads the figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from osmosis_ai.secret import Secret

from .options import gathered

METRICS_TOKEN_VARIABLE = "OSMOSIS_PLATFORM_METRICS_TOKEN"
_SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Operation:
    """How the platform is watched."""

    log_format: str
    log_level: str
    metrics_token: Secret | None


_OPTIONS = (
    click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help="How standard error has the log: lines to read, or a JSON document a line.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(("info", "warning", "error")),
        default="warning",
        show_default=True,
        help="The least that is logged; info has every request and run.",
    ),
    click.option(
        "--metrics-token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="A file with the token for which /metrics gives figures to Prometheus. Also by "
        f"{METRICS_TOKEN_VARIABLE}, which holds the token; without one there are none.",
    ),
)


def _operation(log_format: str, log_level: str, metrics_token_file: Path | None) -> Operation:
    return Operation(log_format, log_level, _metrics_token(metrics_token_file))


operation_options = gathered("operation", _operation, _OPTIONS)
"""Give a command these options, as `operation`."""


def _metrics_token(path: Path | None) -> Secret | None:
    name = METRICS_TOKEN_VARIABLE if path is None else "--metrics-token-file"
    try:
        given = os.environ.get(METRICS_TOKEN_VARIABLE) if path is None else path.read_text("ascii")
    except OSError as error:
        raise click.UsageError(f"{name} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} {path}: the token is not ASCII") from None
    if given is None:
        return None
    token = given.strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise click.UsageError(f"{name}: a token has at least {_SHORTEST} visible characters")
    return Secret(token, name)
