"""Files that a program of a user wrote: opened only where they are files.

The program may be another user's than the platform's: what looks like a file may lead elsewhere, or
let its reader wait.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_written(path: Path) -> BinaryIO:
    """Open a file to read; raise FileNotFoundError for a link, a pipe and a device too."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise FileNotFoundError(path) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileNotFoundError(path)
    return open(number, "rb")
