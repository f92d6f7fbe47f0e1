"""`hf://` among the datasets of a session: fetched once, by the process that starts the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ...dataset.errors import DatasetError
from ...options.reader import OptionReader
from ...storage.run_directory import OSMOSIS
from . import FOUND, SCHEME
from .files import fetch


def apply(config: pytest.Config, texts: Sequence[str]) -> None:
    """Replace each `hf://` by the path of a file; workers are given what was found."""
    if config.option.help or config.option.version:
        return
    found = getattr(config, "workerinput", {}).get(FOUND)
    if found is None:
        option = OptionReader(config).spelled("data")
        hub = config.rootpath / OSMOSIS / "hub"
        found = {text: _fetched(text, hub, option) for text in texts if text.startswith(SCHEME)}
        config.pluginmanager.register(_Handing(found))
    setattr(config.option, FOUND, found)
    paths = [found[text]["path"] if text in found else text for text in texts]
    config.option.osmosis_data = paths


class _Handing:
    """Hands what was found to xdist's workers."""

    def __init__(self, found: dict[str, dict[str, str]]) -> None:
        self._found = found

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Add it to what a worker is started with."""
        node.workerinput[FOUND] = self._found


def _fetched(text: str, folder: Path, option: str) -> dict[str, str]:
    try:
        return fetch(text, folder)._asdict()
    except DatasetError as error:
        raise pytest.UsageError(f"{option} {error}") from None
