"""The parent of one program: runs it within limits, and ends it when its own stdin is closed.

Started as a script that needs the standard library alone. Its order is one line of JSON on stdin;
after that stdin says, by staying open, that the process which wants the program is alive. A word
before it is closed asks for the program's end; without one that process has died.

A command around the program has the environment of this process, and no folder of the program. It
starts this script again, with `launch`, which reads from stdin what the program alone is to have.
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
LAUNCH = "launch"


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
    reading, writing = os.pipe()
    child = os.fork()  # of a process that has one thread
    if not child:
        os.close(writing)
        _become(order, reading, parent, libc)
    os.close(reading)
    threading.Thread(target=_tell, args=(writing, order), daemon=True).start()
    return child


def _tell(writing: int, order: dict[str, Any]) -> None:
    """Tell what is started by a command around it: no argument and no variable of that says so."""
    with contextlib.suppress(BrokenPipeError), open(writing, "w", encoding="ascii") as file:
        json.dump({name: order[name] for name in ("words", "folder", "environment")}, file)


def _become(order: dict[str, Any], reading: int, parent: int, libc: Any) -> NoReturn:
    wrapper = order["wrapper"]
    try:
        os.setsid()
        os.dup2(reading if wrapper else os.open(os.devnull, os.O_RDONLY), 0)
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
    except (OSError, ValueError) as error:
        _cannot_start(order["words"], error)
    if wrapper:
        launcher = [sys.executable, "-I", "-S", os.path.abspath(__file__), LAUNCH]
        _execute([*wrapper, *launcher], "/", dict(os.environ))
    _execute(order["words"], order["folder"], order["environment"])


def launch() -> NoReturn:
    """Become the program that stdin tells of; it has no stdin itself."""
    try:
        told = json.load(sys.stdin)
    except ValueError:
        _cannot_start(["the program"], ValueError("the command around it has taken its stdin"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _execute(told["words"], told["folder"], told["environment"])


def _execute(words: list[str], folder: str, environment: dict[str, str]) -> NoReturn:
    """Become a program, with each signal as it is by default: Python ignores some."""
    try:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError):  # of the C library's own
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(folder)
        os.execvpe(words[0], words, environment)
    except (OSError, ValueError) as error:
        _cannot_start(words, error)


def _cannot_start(words: list[str], error: Exception) -> NoReturn:
    message = f"cannot start {words[0]}: {getattr(error, 'strerror', None) or error}\n"
    os.write(2, message.encode("utf-8", "replace"))
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
    if sys.argv[1:] == [LAUNCH]:
        launch()
    status = main()
    os._exit(status)
