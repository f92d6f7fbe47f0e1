"""The options of `submit` about what is tried on this machine first. Imports none of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])
MODEL_ROWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What to try."""

    is_off: bool = False
    strict: bool = False
    """Whether what it finds forbids to submit."""
    run_row: bool = False
    """Whether to run a row against the embedded endpoint."""
    model: str | None = None
    """The model to run rows with."""
    rows: int = MODEL_ROWS
    """How many of them."""


_OPTIONS = (
    click.option("--strict", is_flag=True, help="Do not submit where trying the code fails."),
    click.option(
        "--preflight",
        is_flag=True,
        help="First run one row of datasets/ against the embedded endpoint: no model is paid, "
        "unless the grader asks one.",
    ),
    click.option(
        "--preflight-model", metavar="NAME", help="First run rows of datasets/ with this model."
    ),
    click.option(
        "--rows",
        metavar="N",
        type=click.IntRange(min=1),
        help=f"Rows for --preflight-model (default: {MODEL_ROWS}).",
    ),
    click.option("--no-check", is_flag=True, help="Do not even import the rollout's code."),
)


def preflight_options(command: Command) -> Command:
    """Add the options to a command, which gets them as its argument `preflight`."""

    def with_preflight(
        *args: Any,
        strict: bool,
        preflight: bool,
        preflight_model: str | None,
        rows: int | None,
        no_check: bool,
        **values: Any,
    ) -> Any:
        if no_check and (strict or preflight or preflight_model):
            raise click.UsageError("--no-check leaves out what the other options ask for")
        if rows and not preflight_model:
            raise click.UsageError("--rows is for --preflight-model: give that too")
        chosen = Preflight(
            is_off=no_check,
            strict=strict,
            run_row=preflight,
            model=preflight_model,
            rows=rows or MODEL_ROWS,
        )
        return command(*args, preflight=chosen, **values)

    wrapped: Any = update_wrapper(with_preflight, command)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return cast("Command", wrapped)
