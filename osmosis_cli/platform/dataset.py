"""`osmosis dataset`: the datasets of the workspace on the platform."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from osmosis_ai.platform.answers import number_of, text_of
from osmosis_ai.platform.datasets import PATH

from ..lazy_group import Entry, LazyGroup
from .run_commands import (
    list_options,
    show_list,
)

EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset list
"""
_HEADER = ("name", "status", "rows", "size", "uploaded", "id")
_LEAST_FIRST = ("id", "size", "uploaded")
"""Columns that a narrow terminal does without, in this order."""

dataset_group = LazyGroup(
    "dataset",
    table={
        "list": Entry("platform.dataset:dataset_list", "List those on the platform."),
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
