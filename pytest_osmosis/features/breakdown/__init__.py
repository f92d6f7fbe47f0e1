"""Figures by the values of a column of the dataset: `--osmosis-by`, and gates on each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gates.names import EACH, PREFIXES
from ...options.table import FeatureEntry, Option, OptionSet
from ...reports.formats import SectionFormat

if TYPE_CHECKING:
    from ...options.reader import OptionReader


def _read(given: OptionReader) -> tuple[str, ...] | None:
    """Return the columns for figures; none of them where only gates may be on values."""
    names = tuple(given.distinct("by", str.casefold).values())
    gates = any(text.split()[:1] == [EACH] for text in given("gate"))
    return names if names or gates else None


def _register() -> None:
    PREFIXES[EACH] = f"{__name__}.gates"


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
    register=_register,
)
