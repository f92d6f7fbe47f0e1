"""The options of rows -> which rows are taken, and which columns serve as which."""

from __future__ import annotations

from typing import Any

import pytest

from .reader import OptionReader
from .values import report_of


def selection(given: OptionReader) -> dict[str, Any]:
    """Return which rows are taken; named on the command line, they replace what the ini takes."""
    others = ("limit", "offset", "sample")
    if given("rows"):
        for name in others:
            if given.raw(name) is None:
                continue
            if given.on_command_line(name) or not given.on_command_line("rows"):
                raise pytest.UsageError(
                    f"{given.spelled('rows')} and {given.spelled(name)} both say which rows: "
                    "give one of them"
                )
        return {"rows": _rows(given)}
    return {name: given(name) for name in others}


def _rows(given: OptionReader) -> str:
    """The indices of rows, those of a report looked up."""
    text: str = given("rows")
    if (report := report_of(text)) is None:
        return text
    from ..dataset.sampling import as_text
    from ..reports.json_reader import UnreadableReport, read_row_indices

    try:
        return as_text(read_row_indices(given.path("rows", report)))
    except UnreadableReport as error:
        raise pytest.UsageError(f"{given.spelled('rows')}: {error}") from None


def column_map(given: OptionReader) -> tuple[str, ...]:
    """Return which columns serve as which, checked together."""
    texts: tuple[str, ...] = given("map")
    if texts:
        from ..dataset.columns import mapping_of

        try:
            mapping_of(texts)
        except ValueError as error:
            raise pytest.UsageError(f"{given.spelled('map')}: {error}") from None
    return texts
