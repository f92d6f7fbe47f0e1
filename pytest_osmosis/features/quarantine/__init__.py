"""Rows that are run and shown, and decide nothing: `--osmosis-quarantine`."""

from __future__ import annotations

from ...options.table import FeatureEntry, Option, OptionSet
from ...reports.formats import SectionFormat

QUARANTINE = FeatureEntry(
    "quarantine",
    [
        OptionSet(
            "gates",
            (
                Option(
                    "quarantine",
                    "run and show the rows whose ids this file names, one a line, and leave them "
                    "out of figures and gates",
                    metavar="FILE",
                    is_path=True,
                ),
            ),
        )
    ],
    read=lambda given: given("quarantine"),
    feature="QuarantineFeature",
    section=SectionFormat("quarantine", "features.quarantine.saved"),
)
