"""The datasets of a workspace: their first rows, the runs that used them, and deleting one."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from ..database.models import Run
from ..datasets import records
from ..datasets.files import DatasetFiles
from ..execution import deletion
from .context import PageContext
from .rendering import go_to

PAGE = 50
_BEGINNING = 256 * 1024
"""Bytes of a file that are looked at for a preview."""
_PREVIEWED = 20


def show_datasets(context: PageContext) -> Response:
    """Show them."""
    offset = context.whole("offset")
    found, total = records.newest(context.session, context.workspace.id, limit=PAGE, offset=offset)
    return context.show(
        "datasets.html",
        active="datasets",
        datasets=found,
        total=total,
        offset=offset,
        page_size=PAGE,
    )


def show_dataset(context: PageContext) -> Response:
    """Show the first rows of one, and the runs that used it."""
    dataset = records.find(context.session, context.workspace.id, context.request.path_params["id"])
    query = select(Run.name).where(Run.dataset_id == dataset.id).order_by(Run.created_at.desc())
    return context.show(
        "dataset.html",
        active="datasets",
        dataset=dataset,
        rows=_first_rows(DatasetFiles(context.settings.data, dataset.id, dataset.extension).rows),
        runs=context.session.scalars(query.limit(PAGE)).all(),
    )


def _first_rows(path: Path) -> list[dict[str, Any]]:
    """Return rows that the beginning of a file has whole; none of a file that is not lines."""
    if not path.exists() or path.suffix not in (".csv", ".jsonl"):
        return []
    with path.open("rb") as file:
        lines = file.read(_BEGINNING).decode("utf-8-sig", "replace").splitlines()
        whole = lines if not file.read(1) else lines[:-1]
    try:
        if path.suffix == ".csv":
            return [*islice(csv.DictReader(whole, restkey=""), _PREVIEWED)]
        rows = [json.loads(line) for line in whole[:_PREVIEWED] if line.strip()]
    except (ValueError, RecursionError, csv.Error):
        return []
    return [row for row in rows if isinstance(row, dict)]


def delete_dataset(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Delete one."""
    dataset = records.find(context.session, context.workspace.id, context.request.path_params["id"])
    deletion.delete_dataset(context.session, context.settings.data, dataset)
    return go_to(f"{context.path('datasets')}?done=deleted")
