"""Import a module in a thread while the session does other work, and before the module is needed.

aiohttp reads the system's certificates twice when it is imported: 100 ms and more, during which the
thread needs no interpreter lock. numpy takes as long, while runs wait for the model.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module


def import_ahead(name: str) -> None:
    """Begin to import a module; an import of it meanwhile waits for the rest."""
    if name not in sys.modules:
        threading.Thread(target=_import, args=[name], name="osmosis-import", daemon=True).start()


def _import(name: str) -> None:
    with suppress(Exception):  # what needs it imports it again, and reports why it cannot be
        import_module(name)
