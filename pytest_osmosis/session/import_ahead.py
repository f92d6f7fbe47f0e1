"""Import modules in a thread while the session does other work, and before the module is needed.

aiohttp reads the system's certificates twice when it is imported: 100 ms and more, during which the
thread needs no interpreter lock. numpy takes as long, while runs wait for the model.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module

_THREAD = "osmosis-import"
NEEDED_AT_END = (
    "pytest_osmosis.analysis.score_table",
    "pytest_osmosis.analysis.aggregate",
    "pytest_osmosis.reports.terminal",
    "pytest_osmosis.session.failed_sections",
    "pytest_osmosis.session.screen",
)
"""What a session does with its results imports these."""


def import_ahead(*names: str) -> None:
    """Begin to import modules; an import of one meanwhile waits for the rest of it."""
    left = [name for name in names if name not in sys.modules]
    if left:
        threading.Thread(target=_import, args=left, name=_THREAD, daemon=True).start()


def end_imports() -> None:
    """Wait for what is being imported.

    Until 3.11.7 two threads of CPython cannot parse source: `ast.parse` fails in one of them.
    """
    for thread in threading.enumerate():
        if thread.name == _THREAD:
            thread.join()


def _import(*names: str) -> None:
    for name in names:
        with suppress(Exception):  # what needs it imports it again, and reports why it cannot be
            import_module(name)
