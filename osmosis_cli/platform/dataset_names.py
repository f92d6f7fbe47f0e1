"""The datasets that a platform lists, by name: what an upload doubles, and what a run asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from osmosis_ai.platform.answers import text_of
from osmosis_ai.platform.client import PlatformError
from osmosis_ai.platform.datasets import PATH

if TYPE_CHECKING:
    from osmosis_ai.platform.client import Listing, PlatformClient

_LOOKED_AT = 500
"""How many of the newest datasets are compared by name."""


def earlier_of_same_name(
    client: PlatformClient, dataset: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the newest other dataset that a config names alike; None where none is known."""
    found = _newest(client)
    others = (each for each in found.items if each.get("id") != dataset.get("id")) if found else ()
    name = stem(dataset)
    return next((each for each in others if name and stem(each) == name), None)


def is_missing(client: PlatformClient, name: str) -> bool:
    """Return whether the platform lists its datasets, and none of this name, stem or id."""
    found = _newest(client)
    if found is None or found.has_more:
        return False
    return not any(name in _names(each) for each in found.items)


def _names(dataset: Mapping[str, Any]) -> set[str]:
    file_name = text_of(dataset, "file_name") or ""
    return {text_of(dataset, "id") or "", file_name, stem(dataset)} - {""}


def stem(dataset: Mapping[str, Any]) -> str:
    """Return the name of its file without the extension, as configs have it."""
    return (text_of(dataset, "file_name") or "").rpartition(".")[0]


def _newest(client: PlatformClient) -> Listing | None:
    try:
        return client.collect(PATH, "datasets", limit=_LOOKED_AT)
    except PlatformError:  # what is sent next says what is wrong
        return None
