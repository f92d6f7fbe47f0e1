"""The check of a dataset's rows by a child process, which has limits of time and memory.

A small file may make much work, and a request that waits for it keeps a thread of the platform.
"""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
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
        output = files.folder / "check"
        output.unlink(missing_ok=True)
        try:
            words = [*_PROGRAM, str(files.rows), str(ROWS)]
            status = run_limited(
                words, files.folder, output, time_s=TIME_S, limits=LIMITS, check=self.refuse_closing
            )
            found = _answer(output, status)
        except FileNotFoundError:  # with the folder
            raise upload_gone() from None
        finally:
            output.unlink(missing_ok=True)
        if "error" in found:
            raise NoDataset(found["error"])
        count: int | None = found.get("row_count")
        return count


def _answer(output: Path, status: int | None) -> dict[str, Any]:
    """Return what the child has printed last; nothing where it could not end."""
    lines = output.read_text("utf-8", "replace").splitlines()
    if status:
        message = lines[-1] if lines else "nothing was printed"
        name = output.parent.name
        _log.warning("dataset %s is not checked: exit status %d: %s", name, status, message)
        return {}
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found
