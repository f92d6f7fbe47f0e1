"""`osmosis dataset`: the datasets of the workspace on the platform."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.answers import number_of, text_of
from osmosis_ai.platform.datasets import PATH

from ..lazy_group import Entry, LazyGroup
from .run_commands import (
    json_option,
    list_options,
    may_ask,
    run_argument,
    show_list,
    yes_option,
)

EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset list
  osmosis dataset delete my-rollout
"""
_HEADER = ("name", "status", "rows", "size", "uploaded", "id")
_LEAST_FIRST = ("id", "size", "uploaded")
"""Columns that a narrow terminal does without, in this order."""

dataset_group = LazyGroup(
    "dataset",
    table={
        "list": Entry("platform.dataset:dataset_list", "List those on the platform."),
        "delete": Entry("platform.dataset:dataset_delete", "Delete one on the platform."),
        "upload": Entry("platform.dataset_upload:dataset_upload", "Check a file and upload it."),
    },
    help="Look after the datasets of this workspace on the platform.",
    epilog=EPILOG,
)


@click.command(
    "list", epilog="\b\nExamples:\n  osmosis dataset list\n  osmosis dataset list --all --json\n"
)
@list_options
def dataset_list(limit: int | None, *, as_json: bool) -> None:
    """List the datasets of this workspace on the platform."""
    from .connection import connect
    from .run_text import utc_now

    with connect() as client:
        found = client.collect(PATH, "datasets", limit=limit)
    show_list(
        "datasets",
        found,
        lambda: [_HEADER, *(_row(item, utc_now()) for item in found.items)],
        empty="this workspace has no datasets; upload one: osmosis dataset upload FILE",
        least_first=_LEAST_FIRST,
        command="osmosis dataset list",
        as_json=as_json,
    )


@click.command("delete", epilog="\b\nExample:\n  osmosis dataset delete my-rollout --yes\n")
@run_argument
@yes_option
@json_option
def dataset_delete(name: str, *, yes: bool, as_json: bool) -> None:
    """Delete a dataset on the platform with its file, for good.

    Reports of evaluations that used it stay. A dataset of runs that have not ended is refused, and
    a name that several datasets have: give the id.
    """
    from osmosis_ai.platform.datasets import delete_dataset

    from .connection import connect
    from .run_text import render

    may_ask(yes=yes, as_json=as_json)
    if not yes:
        click.confirm(f"delete the dataset {printable(name)} for good?", abort=True)
    with connect() as client:
        answer = delete_dataset(client, name)
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(f"{render(text_of(answer, 'file_name') or name)} is deleted")


def _row(dataset: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    from ..eval.lines import size_text
    from .run_text import UNKNOWN, age, render

    rows, size = number_of(dataset, "row_count"), number_of(dataset, "file_size")
    return (
        render(text_of(dataset, "file_name")),
        render(text_of(dataset, "status")),
        UNKNOWN if rows is None else f"{rows:,.0f}",
        UNKNOWN if size is None else size_text(size),
        age(text_of(dataset, "created_at"), now),
        render(text_of(dataset, "id")),
    )
