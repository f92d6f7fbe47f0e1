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


MARKED_FUNCTIONS = FeatureEntry(
    "marked_functions",
    load=_load,
    config_fields=[
        ConfigField("marked", "marked", bool, False, "of a test function with @pytest.mark.osmosis")
    ],
)
