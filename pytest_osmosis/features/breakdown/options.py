"""The option of figures by a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options.table import FeatureEntry, Option, OptionSet
from ...reports.formats import SectionFormat

if TYPE_CHECKING:
    import pytest

    from ...options.reader import OptionReader
    from ...session.seams import Feature


def _read(given: OptionReader) -> tuple[str, ...] | None:
    return tuple(given.distinct("by", str.casefold).values()) or None


def _make(config: pytest.Config, part: tuple[str, ...]) -> Feature:
    from .feature import BreakdownFeature

    return BreakdownFeature(part)


BREAKDOWN = FeatureEntry(
    "breakdown",
    [
        OptionSet(
            "reports",
            (
                Option(
                    "by",
                    "show the figures for each value of this column of the dataset too",
                    metavar="COLUMN",
                    repeatable=True,
                ),
            ),
            after="",
        )
    ],
    read=_read,
    make=_make,
    section=SectionFormat("by", "features.breakdown.saved", is_list=True),
)
