"""`osmosis dataset list`: the datasets on the platform, the newest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

LIMIT = 20
_HEADER = ("name", "status", "rows", "size", "uploaded", "id")


@click.command(
    "list", epilog="\b\nExamples:\n  osmosis dataset list\n  osmosis dataset list --all --json\n"
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=LIMIT,
    show_default=True,
    metavar="N",
    help="How many.",
)
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def dataset_list(*, limit: int, is_all: bool, as_json: bool) -> None:
    """List the datasets of this workspace on the platform."""
    from osmosis_ai.platform.datasets import PATH

    from ..eval.lines import columns, say, table
    from .connection import connect_workspace
    from .run_text import utc_now

    with connect_workspace() as client:
        found = client.collect(PATH, "datasets", limit=None if is_all else limit)
    if as_json:
        document = {
            "datasets": list(found.items),
            "total_count": found.total_count,
            "has_more": found.has_more,
        }
        click.echo(json.dumps(document))
        return
    if not found.items:
        say("this workspace has no datasets; upload one: osmosis dataset upload FILE")
        return
    now = utc_now()
    for line in table([_HEADER, *(_row(item, now) for item in found.items)], columns()):
        say(line)
    if found.has_more:
        of = "" if found.total_count is None else f" of {found.total_count:,}"
        say(f"{len(found.items):,}{of}; all of them: osmosis dataset list --all")


def _row(dataset: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    from osmosis_ai.platform.answers import number_of, text_of

    from ..eval.lines import size_text
    from .run_text import UNKNOWN, age, shown

    rows, size = number_of(dataset, "row_count"), number_of(dataset, "file_size")
    return (
        shown(text_of(dataset, "file_name")),
        shown(text_of(dataset, "status")),
        UNKNOWN if rows is None else f"{rows:,.0f}",
        UNKNOWN if size is None else size_text(size),
        age(text_of(dataset, "created_at"), now),
        shown(text_of(dataset, "id")),
    )
