"""The parent of one program: runs it within limits, and ends it when its own stdin is closed.

Started as a script that needs the standard library alone. Its order is one line of JSON on stdin;
after that stdin says, by staying open, that the process which wants the program is alive. A word
before it is closed asks for the program's end; without one that process has died.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import sys
import threading
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_LIMITS = {
    "file_bytes": resource.RLIMIT_FSIZE,
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_s": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
}
_AFTER_XCPU_S = 2
"""Between the signal that says why and the kill."""
CANNOT_START = 127


def main() -> int:
    """Run what the first line of stdin orders; return its exit status."""
    line = sys.stdin.buffer.readline()
    if not line:
        return CANNOT_START
    order = json.loads(line)
    _lock(order["lock"])
    child = _start(order)
    ended = threading.Event()
    words = (child, ended, order["grace_s"], order["orphan_grace_s"])
    threading.Thread(target=_end_on_silence, args=words, daemon=True).start()
    _, status = os.waitpid(child, 0)
    ended.set()
    _signal_group(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _lock(path: str | None) -> None:
    """Lock a file until this process ends."""
    if path is not None:
        fcntl.flock(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600), fcntl.LOCK_EX)


def _start(order: dict[str, Any]) -> int:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    parent = os.getpid()
    child = os.fork()  # of a process that has one thread
    if child:
        return child
    _become(order, parent, libc)


def _become(order: dict[str, Any], parent: int, libc: Any) -> NoReturn:
    words = order["words"]
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _limit(resource.RLIMIT_CORE, 0)
        for name, number in _LIMITS.items():
            if order["limits"].get(name) is not None:
                _limit(number, order["limits"][name])
        if order["user"] is not None:
            os.initgroups(order["user"]["name"], order["user"]["gid"])
            os.setgid(order["user"]["gid"])
            os.setuid(order["user"]["uid"])
        if libc is not None:  # another user ends what was asked for before
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(CANNOT_START)
        os.chdir(order["folder"])
        os.execvpe(words[0], words, order["environment"])
    except (OSError, ValueError) as error:
        message = f"cannot start {words[0]}: {getattr(error, 'strerror', None) or error}\n"
        os.write(2, message.encode("utf-8", "replace"))
    finally:
        os._exit(CANNOT_START)


def _limit(number: int, wanted: int) -> None:
    most = resource.getrlimit(number)[1]
    value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    hard = value + (_AFTER_XCPU_S if number == resource.RLIMIT_CPU else 0)
    if most != resource.RLIM_INFINITY:
        hard = min(hard, most)
    resource.setrlimit(number, (value, hard))


def _end_on_silence(
    child: int, ended: threading.Event, grace_s: float, orphan_grace_s: float
) -> None:
    """End the program when stdin is closed: it alone is asked, then its whole group is killed."""
    is_asked = bool(sys.stdin.buffer.read())
    if ended.is_set():
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    if not ended.wait(grace_s if is_asked else orphan_grace_s):
        _signal_group(child, signal.SIGKILL)


def _signal_group(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, number)


if __name__ == "__main__":
    status = main()
    os._exit(status)
