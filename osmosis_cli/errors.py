"""Runs a click command and turns whatever happened into an exit status and a message.

    0 done   1 failed   2 wrong use of the command   130 SIGINT   143 SIGTERM

With `--json` a failure leaves stdout empty and one error document on stderr. It knows no command.

    click.ClickException
    +-- CommandError      a failure with a code for programs, exit 1
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import click

from .buffered_output import Held, held_streams, soften_encodings

PROGRAM = "osmosis"
COMPLETION_VARIABLE = "_OSMOSIS_COMPLETE"
"""The variable in which a shell asks what could come next."""
INTERRUPTED = 130
TERMINATED = 143
TRACEBACK_VARIABLE = "OSMOSIS_TRACEBACK"


class CommandError(click.ClickException):
    """A command that failed: a sentence for people, a code and details for programs."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "failed",
        status: int = 1,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = details


class Answered(click.exceptions.Exit):
    """The command gave its whole answer; its status may still tell of failure."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: its status and, when it failed, what to say."""

    status: int
    failure: click.ClickException | None = None
    code: str = "failed"
    answered: bool = field(default=False)
    """Whether stdout is a whole answer although the status is not 0."""

    @property
    def document(self) -> dict[str, Any]:
        """The error document that `--json` prints."""
        message = self.failure.format_message() if self.failure else "the command failed"
        error: dict[str, Any] = {"code": self.code, "message": message, "exit_code": self.status}
        if isinstance(self.failure, CommandError) and self.failure.details:
            error["details"] = dict(self.failure.details)
        return {"error": error}


def run(command: click.Command, args: Sequence[str]) -> int:
    """Run the command line and return the exit status; everything it says is printed here."""
    soften_encodings()
    with _sigterm_as_exit():
        try:
            status = _run_json(command, args) if wants_json(args) else _run_plain(command, args)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            status = _reader_is_gone()
    return status


def wants_json(args: Sequence[str]) -> bool:
    """Whether `--json` was given; asked of the words, since parsing itself may fail."""
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own


def _run_plain(command: click.Command, args: Sequence[str]) -> int:
    outcome = _outcome(command, args, held=None)
    if outcome.failure:
        outcome.failure.show()
    return outcome.status


def _run_json(command: click.Command, args: Sequence[str]) -> int:
    with held_streams() as held:
        outcome = _outcome(command, args, held=held)
        if outcome.status and not outcome.answered:
            held.out.drop()
            held.err.drop()
            click.echo(json.dumps(outcome.document), err=True)
        held.out.release()
        held.err.release()
    return outcome.status


def _outcome(command: click.Command, args: Sequence[str], held: Held | None) -> Outcome:
    try:
        with command.make_context(PROGRAM, list(args), obj=held, color=_color()) as context:
            command.invoke(context)
        return Outcome(0)
    except click.exceptions.Exit as end:
        return Outcome(end.exit_code, answered=isinstance(end, Answered))
    except click.UsageError as error:
        return Outcome(error.exit_code, error, "usage")
    except CommandError as error:
        return Outcome(error.status, error, error.code)
    except click.ClickException as error:
        return Outcome(error.exit_code, error)
    except (KeyboardInterrupt, click.Abort) as stop:
        return _stopped(stop)
    except _Terminated:
        return Outcome(TERMINATED, CommandError("terminated"), "terminated")
    except Exception as error:  # the boundary: no traceback of ours reaches the user
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise
        return Outcome(1, CommandError(_unexpected(error)), "internal")


def _stopped(stop: BaseException) -> Outcome:
    # click turns Ctrl-C at a prompt into Abort, and so it does with "no" and with a closed stdin
    causes = (stop, stop.__cause__, stop.__context__)
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return Outcome(INTERRUPTED, CommandError("interrupted"), "interrupted")
    return Outcome(1, CommandError("aborted, nothing was done"), "aborted")


def _unexpected(error: Exception) -> str:
    from osmosis_ai._conflict import conflicting_distribution

    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    text = f"{type(error).__name__}: {error}"
    # A second distribution over the same package shows itself as names that are missing.
    if isinstance(error, ImportError | AttributeError) and (told := conflicting_distribution()):
        return f"{text}\n{told}"
    return f"{text}\n(set {TRACEBACK_VARIABLE}=1 to see where)"


def _color() -> bool | None:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if plain else None


class _Terminated(BaseException):
    """SIGTERM, as an exception so that files are closed on the way out."""


@contextlib.contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(signum: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _reader_is_gone() -> int:
    # Python flushes stdout once more at exit and would complain: give it a place to write to.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
