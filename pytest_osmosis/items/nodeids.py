"""Node ids of runs: how they are built.

The items of a data file are `data.jsonl::<row>[run-<run>]`, with `[<label>]` behind the row where
several suites run it; those of a test function are `test_it.py::test_it[<row>-run-<run>]`.
"""

from __future__ import annotations

import os
from pathlib import Path


def file_id(path: Path, root: Path) -> str:
    """Return the node id of a data file: its path from the root directory, with `..` outside it.

    What pytest gives a file outside is empty where the file is an argument of the session: two such
    files would have the same node ids, and no run would be found by its own.
    """
    return os.path.relpath(path, root).replace(os.sep, "/")


def item_name(row: str, run_index: int, label: str) -> str:
    """Return the name of a run's item in its data file."""
    return f"{row}[{label}][run-{run_index}]" if label else f"{row}[run-{run_index}]"


def parameter_id(row: str, run_index: int) -> str:
    """Return the parameter id of a run of a test function."""
    return f"{row}-run-{run_index}"
