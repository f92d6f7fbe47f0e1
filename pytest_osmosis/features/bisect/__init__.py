"""Exit statuses as `git bisect run` reads them: `--osmosis-bisect`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    import pytest

_OPTION = Option(
    "bisect",
    "end as `git bisect run` expects: 0 good, 1 where a gate or a run failed by the code's doing, "
    "125 where this commit says nothing, 130 or 143 where it was interrupted; runs everything anew",
    flag=True,
    excludes=("resume", "extend", "retry-failed"),
)


def _load(config: pytest.Config) -> Sequence[str]:
    if getattr(config.known_args_namespace, _OPTION.dest, None) or config.getini(_OPTION.ini_name):
        from .statuses import BisectStatuses

        config.pluginmanager.register(BisectStatuses(), "osmosis-bisect")
    return ()


BISECT = FeatureEntry(
    "bisect",
    [OptionSet("gates", (_OPTION,))],
    read=lambda given: given("bisect") or None,
    load=_load,
    feature="BisectFeature",
)
