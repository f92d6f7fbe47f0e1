"""A config file of a submitted evaluation among the arguments: `pytest configs/eval/X.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options.table import FeatureEntry

if TYPE_CHECKING:
    import pytest


def _change_arguments(config: pytest.Config) -> None:
    if any(text.partition("::")[0].endswith(".toml") for text in config.args):
        from .argument import apply

        apply(config)


CONFIG_FILES = FeatureEntry("config_files", change_arguments=_change_arguments)
