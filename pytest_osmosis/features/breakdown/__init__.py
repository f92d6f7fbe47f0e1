"""Figures by the values of a column of the dataset: `--osmosis-by`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options.table import FeatureEntry, Option, OptionSet
from ...reports.formats import SectionFormat

if TYPE_CHECKING:
    from ...options.reader import OptionReader


def _read(given: OptionReader) -> tuple[str, ...] | None:
    return tuple(given.distinct("by", str.casefold).values()) or None


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
    feature="BreakdownFeature",
    section=SectionFormat("by", "features.breakdown.saved", is_list=True),
)
