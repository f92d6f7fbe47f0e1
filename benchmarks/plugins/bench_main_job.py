"""In a measured session: which modules of ours are imported, and which functions are entered."""

from __future__ import annotations

import json
import sys
import threading
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType

PACKAGES = ("osmosis_ai", "osmosis_cli", "osmosis_executors", "osmosis_platform", "pytest_osmosis")

entered: set[CodeType] = set()


def note(frame: FrameType, event: str, _: object) -> None:
    """Keep what is called; functions of others are sorted out at the end."""
    if event == "call":
        entered.add(frame.f_code)


def pytest_unconfigure() -> None:
    """Write the files of our modules, and from which line to which each entered function goes."""
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    ours = {
        file
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in PACKAGES and (file := getattr(module, "__file__", None))
    }
    spans = [
        (code.co_filename, code.co_firstlineno, max(line or 0 for _, _, line in code.co_lines()))
        for code in list(entered)
        if code.co_filename in ours and code.co_flags & CO_OPTIMIZED  # no module, no class body
    ]
    with open("bench_main_job.json", "w") as file:
        json.dump({"files": sorted(ours), "spans": sorted(spans)}, file)


threading.setprofile(note)
sys.setprofile(note)
