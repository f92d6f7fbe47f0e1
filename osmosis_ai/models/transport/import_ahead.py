"""Import aiohttp in a thread while the session prepares its rows and items.

aiohttp reads the system's certificates twice when it is imported: 100 ms and more, during which the
thread needs no interpreter lock.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module


def import_ahead() -> None:
    """Begin to import aiohttp; an import of it meanwhile waits for the rest."""
    if "aiohttp" not in sys.modules:
        threading.Thread(target=_import, name="osmosis-import", daemon=True).start()


def _import() -> None:
    with suppress(Exception):  # the first request imports it again, and reports why it cannot be
        import_module("aiohttp")
