"""The log of a rollout's events: one file for each rollout, one JSON line for each event.

A process writes into a folder named by the time at which it began. A rollout's id may hold any
character: what a file name must not have is written as `%XX`. Knows nothing of what is logged.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import quote

_LONGEST = 200
"""Characters of a file's name before its end; most file systems take 255 bytes."""


def session_folder(debug_dir: str | os.PathLike[str]) -> Path:
    """Return the folder of a session that begins now: `<debug_dir>/<seconds since 1970>`."""
    return Path(debug_dir, str(int(time.time())))


def name_for_file(rollout_id: str) -> str:
    """Return the id as part of a file's name; two ids never share one."""
    name = quote(rollout_id, safe=":@")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) <= _LONGEST:
        return name
    from hashlib import sha256

    # No quoted id has a plus sign: what is cut cannot be another id that is not.
    return f"{name[:100]}+{sha256(name.encode('ascii')).hexdigest()[:40]}"


def append_line(folder: str | os.PathLike[str], rollout_id: str, text: str) -> None:
    """Append one line to the rollout's file, which only its owner can read; raise OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name_for_file(rollout_id) + ".jsonl")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, text.encode("ascii") + b"\n")
    finally:
        os.close(descriptor)
