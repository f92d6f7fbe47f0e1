"""What an exit status of an evaluation means to its user."""

from __future__ import annotations

import signal

_SIGNALS: dict[int, str] = {
    signal.SIGXCPU: "a process of it used more processor time than the platform allows",
    signal.SIGXFSZ: "a process of it wrote a larger file than the platform allows",
    signal.SIGKILL: "it was killed, as the kernel does where the memory ends",
}


def sentence(status: int) -> str:
    """Return why an evaluation ended with a status that is not one of its results."""
    told = _SIGNALS.get(status - 128)
    what = f"the evaluation ended with exit status {status}"
    return f"{what}: {told}" if told else f"{what}; the log has its output"
