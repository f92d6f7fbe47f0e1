"""Early stopping: no further run once gates are certain: `--osmosis-stop-when-decided`."""

from __future__ import annotations

from ...options.table import FeatureEntry, Option, OptionSet

_OPTION = Option(
    "stop-when-decided",
    "stop early once every gate's verdict is certain",
    flag=True,
    needs=("gate",),
)


EARLY_STOPPING = FeatureEntry(
    "early_stopping",
    [OptionSet("gates", (_OPTION,), after="confidence")],
    read=lambda given: given("stop-when-decided") or None,
    feature="EarlyStoppingFeature",
)
