"""Test functions with the marker `osmosis`: run on every row and run of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options.table import FeatureEntry
from ...reports.formats import ConfigField

if TYPE_CHECKING:
    import pytest


def _load(config: pytest.Config) -> tuple[()]:
    from .collecting import MarkedFunctions

    config.pluginmanager.register(MarkedFunctions(), "osmosis-marked-functions")
    return ()


def _begins(config: pytest.Config) -> bool:
    from .selecting import any_selected

    return any_selected(config)


MARKED_FUNCTIONS = FeatureEntry(
    "marked_functions",
    load=_load,
    begins=_begins,
    config_fields=[
        ConfigField(
            "marked", "scored_by_test", bool, False, "of a test function with @pytest.mark.osmosis"
        )
    ],
)
