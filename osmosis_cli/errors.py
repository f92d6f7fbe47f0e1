"""Run a click command, and convert what it raises to an exit status and a message.

    0 done   1 failed   2 wrong use of the command   130 SIGINT   143 SIGTERM

With `--json` a failure leaves stdout empty and one error document on stderr. Knows no command.

    click.ClickException
    +-- CommandError      a failure with a code for programs, exit 1
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import click

from osmosis_ai.secret import mask_everywhere, redact
from osmosis_ai.secret_variables import secret_variables

from .buffered_output import (
    BufferedStreams,
    buffered_streams,
    open_closed_streams,
    soften_encodings,
)
from .instead import instead_of
from .option_words import own_words

PROGRAM = "osmosis"
COMPLETION_VARIABLE = "_OSMOSIS_COMPLETE"
"""The variable by which a shell asks for completions."""
INTERRUPTED = 130
TERMINATED = 143
TRACEBACK_VARIABLE = "OSMOSIS_TRACEBACK"
ENDS_BY_SIGNAL = "osmosis.ends_by_signal"
"""In `meta` of a command's context: a signal is how it ends, and no error to print."""


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
        super().__init__(own_words(message))
        self.code = code
        self.status = status
        self.details = details


def wrong_use(message: str) -> CommandError:
    """Return the error of a wrong use of the command that is no matter of its options alone."""
    return CommandError(message, code="usage", status=2)


@contextlib.contextmanager
def command_errors(
    *kinds: type[Exception], code: str = "", status: int = 1, where: str = ""
) -> Iterator[None]:
    """Make errors of these kinds the command's; `where` comes before what they say.

    Without a `code` it is the error's own.
    """
    try:
        yield
    except kinds as error:
        named = code or getattr(error, "code", "failed")
        raise CommandError(f"{where}{error}", code=named, status=status) from None


@contextlib.contextmanager
def usage_errors(*kinds: type[Exception], where: str = "") -> Iterator[None]:
    """Make errors of these kinds a wrong use of an option."""
    try:
        yield
    except kinds as error:
        raise click.UsageError(f"{where}{error}") from None


class CommandDone(click.exceptions.Exit):
    """The command printed its complete output, although its status may not be 0."""


class CommandOutcome(NamedTuple):
    """How a command ended: its status and, where there is one, the error to print."""

    status: int
    failure: click.ClickException | None = None
    is_usual: bool = False
    """Whether it is how the command is meant to end: then only `--json` has the error."""


def run(command: click.Command, args: Sequence[str]) -> int:
    """Run the command line, print its errors, and return the exit status."""
    open_closed_streams()
    soften_encodings()
    mask_everywhere(*secret_variables())
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
    """Return whether `--json` is among the words: parsing them may fail."""
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own


def _run_plain(command: click.Command, args: Sequence[str]) -> int:
    outcome = _outcome(command, args, streams=None)
    if outcome.failure and not outcome.is_usual:
        text = io.StringIO()
        outcome.failure.show(text)
        _print_error(text.getvalue(), label=click.style("Error:", fg="red"))
    return outcome.status


def _print_error(text: str, label: str = "Error:") -> None:
    from pytest_osmosis.escaping import escape_control_chars

    shown = escape_control_chars(redact(text)).replace("Error:", label, 1)
    # to a file: without one click prints UTF-8 where there is ASCII
    click.echo(shown, nl=False, file=sys.stderr, color=_color())


def _run_json(command: click.Command, args: Sequence[str]) -> int:
    with buffered_streams() as streams:
        status, failure, _ = _outcome(command, args, streams=streams)
        if failure is not None:
            streams.out.drop()
            streams.err.drop()
            code = "usage" if isinstance(failure, click.UsageError) else "failed"
            error = {"code": code, "message": failure.format_message(), "exit_code": status}
            if isinstance(failure, CommandError):
                error["code"] = failure.code
                error |= {"details": dict(failure.details)} if failure.details else {}
            _print_error(f"{json.dumps({'error': error})}\n")
        streams.release()
    return status


def _outcome(
    command: click.Command, args: Sequence[str], streams: BufferedStreams | None
) -> CommandOutcome:
    meta: Mapping[str, Any] = {}
    try:
        with command.make_context(PROGRAM, list(args), obj=streams, color=_color()) as context:
            meta = context.meta
            command.invoke(context)
        return CommandOutcome(0)
    except click.exceptions.Exit as end:
        if isinstance(end, CommandDone) or not end.exit_code:
            return CommandOutcome(end.exit_code)
        return CommandOutcome(end.exit_code, CommandError("the command failed"), is_usual=True)
    except click.NoSuchOption as error:
        found = instead_of(error.ctx, error.option_name)
        text = f"No such option {error.option_name!r}: {found}"
        return CommandOutcome(2, click.UsageError(text, error.ctx) if found else error)
    except click.ClickException as error:
        status = error.status if isinstance(error, CommandError) else error.exit_code
        return CommandOutcome(status, error)
    except (KeyboardInterrupt, click.Abort) as stop:
        # click turns Ctrl-C at a prompt into Abort, and so it does with "no" and a closed stdin
        causes = (stop, stop.__cause__, stop.__context__)
        if not any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            return CommandOutcome(1, CommandError("aborted, nothing was done", code="aborted"))
        failure = CommandError("interrupted", code="interrupted")
        return CommandOutcome(INTERRUPTED, failure, is_usual=ENDS_BY_SIGNAL in meta)
    except Terminated:
        failure = CommandError("terminated", code="terminated")
        return CommandOutcome(TERMINATED, failure, is_usual=ENDS_BY_SIGNAL in meta)
    except Exception as error:  # the boundary: users see a message instead of a traceback
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise
        return CommandOutcome(1, CommandError(_unexpected(error), code="internal"))


def _unexpected(error: Exception) -> str:
    from osmosis_ai._conflict import conflicting_distribution

    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    text = f"{type(error).__name__}: {error}"
    # A second distribution that overwrote files of the package shows as missing names.
    if isinstance(error, ImportError | AttributeError) and (message := conflicting_distribution()):
        return f"{text}\n{message}"
    return f"{text}\n(set {TRACEBACK_VARIABLE}=1 to see where)"


def _color() -> bool | None:
    """Return whether to colour, by the variables of pytest; None: where it is a terminal."""
    if (asked := os.environ.get("PY_COLORS")) in ("0", "1"):
        return asked == "1"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


class Terminated(BaseException):
    """SIGTERM, as an exception so that files are closed on the way out."""

    has_come = False
    """Whether the signal has come to the command that runs."""


def check_terminated() -> None:
    """Raise Terminated where the signal has come: in a finalizer Python drops what is raised."""
    if Terminated.has_come:
        raise Terminated


@contextlib.contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(signum: int, frame: FrameType | None) -> None:
        Terminated.has_come = True
        raise Terminated

    Terminated.has_come = False
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _reader_is_gone() -> int:
    # Python flushes stdout at exit, which would fail: point it at the null device.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
