"""What reports show of a dataset's row: its prompt, its ground truth and its other columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..suite_results import RowData
from .dataset import Dataset

Redact = Callable[[str], str]


def row_data(dataset: Dataset, row_index: int, redact: Redact) -> RowData:
    """Return what the dataset holds of a row, without secrets.

    Raises:
        DatasetError: when the file has changed since it was loaded.
    """
    row = dataset.row(row_index)
    return RowData(
        user_prompt=redact(row.user_prompt),
        ground_truth=None if row.ground_truth is None else redact(row.ground_truth),
        columns={redact(name): _value(value, redact) for name, value in row.extra.items()},
        system_prompt=redact(row.system_prompt),
    )


def _value(value: Any, redact: Redact) -> str | float | bool | None:
    """Return what fits one cell: a number, a boolean or null as it is, all else as text."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    return redact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
