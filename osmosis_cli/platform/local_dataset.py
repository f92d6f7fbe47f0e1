"""The file of a platform's dataset in the workspace: `datasets/<name>.*`."""

from __future__ import annotations

from pathlib import Path

from osmosis_ai.platform.workspace import DATASETS
from pytest_osmosis.dataset.formats import SUFFIXES


def dataset_files(root: Path, name: str) -> list[Path]:
    """Return the files of that name which datasets can be read from; one is right."""
    files = (root / DATASETS / f"{name}{suffix}" for suffix in SUFFIXES)
    return [file for file in files if file.exists()]
