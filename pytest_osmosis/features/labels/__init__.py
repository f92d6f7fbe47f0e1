"""What people say of runs, how far judges agree with it, and what judges' means are by it.

People mark runs in `osmosis eval view`; every session looks whether its runs have been marked.
"""

from __future__ import annotations

from ...analysis.gates.names import OWN_VERDICTS
from ...options.table import FeatureEntry
from ...reports.formats import SectionFormat


def _register() -> None:
    OWN_VERDICTS["agreement"] = f"{__name__}.gates"


LABELS = FeatureEntry(
    "labels",
    read=lambda given: True,
    feature="LabelsFeature",
    section=SectionFormat("people", "features.labels.saved"),
    register=_register,
)
