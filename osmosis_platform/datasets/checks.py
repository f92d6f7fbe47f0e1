"""The check of a dataset's rows by a child process, which has limits of time and memory.

A small file may make much work, and a request that waits for it keeps a thread of the platform.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

from ..errors import busy
from ..limited import LIMITS, Turns, run_limited
from .files import DatasetFiles, upload_gone

ROWS = 100_000
"""So many of a file are checked."""
TIME_S = 20.0
"""How long a check may take: a client waits 30 s for an answer."""
_PROGRAM = ("-m", "osmosis_platform.datasets.row_check")
_log = logging.getLogger(__name__)


class NoDataset(Exception):
    """The file is none; its reason, in which the first line is a sentence."""


class DatasetChecks(Turns):
    """The checks of one process, one of a workspace at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = threading.Event()
        """Set when the platform ends: every check stops."""

    def refuse_closing(self) -> None:
        """Refuse to continue when the platform ends."""
        if self.closing.is_set():
            raise busy()

    def count_rows(self, files: DatasetFiles) -> int | None:
        """Return how many rows a file has, the first of them checked as an evaluation checks them.

        None where that takes more than the limits allow: an evaluation checks its rows itself.

        Raises:
            NoDataset: where a row that was checked is wrong, or the file is.
        """
        try:
            status, printed = run_limited(
                *_PROGRAM,
                files.rows,
                str(ROWS),
                folder=files.folder,
                time_s=TIME_S,
                limits=LIMITS,
                check=self.refuse_closing,
            )
        except FileNotFoundError:  # with the folder
            raise upload_gone() from None
        found = _answer(files.folder.name, status, printed.splitlines())
        if "error" in found:
            raise NoDataset(found["error"])
        count: int | None = found.get("row_count")
        return count


def _answer(name: str, status: int | None, lines: list[str]) -> dict[str, Any]:
    """Return what the child has printed last; nothing where it could not end."""
    if status:
        message = lines[-1] if lines else "nothing was printed"
        _log.warning("dataset %s is not checked: exit status %d: %s", name, status, message)
        return {}
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found
