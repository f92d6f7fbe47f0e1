"""Datasets of the Hugging Face Hub: `--osmosis-data hf://datasets/OWNER/NAME/PATH`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...options.table import FeatureEntry

if TYPE_CHECKING:
    import pytest

    from ...options.reader import OptionReader

SCHEME = "hf://"
FOUND = "osmosis_hub"
"""The attribute of pytest's options with what was found for each text, as workers get it."""


def _change_arguments(config: pytest.Config) -> None:
    from ...options.reader import OptionReader

    texts = OptionReader(config).raw("data") or ()
    if any(text.startswith(SCHEME) for text in texts):
        from .argument import apply

        apply(config, texts)


def _read(given: OptionReader) -> Any:
    return given.attribute(FOUND)


HUB = FeatureEntry("hub", read=_read, feature="HubFeature", change_arguments=_change_arguments)
