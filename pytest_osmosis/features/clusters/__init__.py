"""Rows that belong together: `--osmosis-cluster`, and a hint where they may."""

from __future__ import annotations

from ...options.table import FeatureEntry, Option, OptionSet

CLUSTERS = FeatureEntry(
    "clusters",
    [
        OptionSet(
            "gates",
            (
                Option(
                    "cluster",
                    "rows with one value in this column belong together (questions on one "
                    "document, turns of one customer): intervals, differences and gates count "
                    "them as one",
                    metavar="COLUMN",
                ),
            ),
            after="confidence",
        )
    ],
    read=lambda given: given("cluster") or "",
    feature="ClustersFeature",
)
