"""The pytest session behind `osmosis eval`, in this process.

Guards the session against running anything but an evaluation, keeps a key out of argument lists,
and takes the report for `--json`. It knows nothing of click.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_osmosis.options.reader import TEMPORARY_OUTPUT, TYPED, OptionReader
from pytest_osmosis.storage.atomic_write import is_special, write_whole

from ..buffered_output import BufferedStream
from ..option_words import KEY_VARIABLE, in_own_words


class SessionGuard:
    """Refuses a session without a dataset: it would run the project's ordinary tests instead."""

    def __init__(self, typed: Sequence[str]) -> None:
        """`typed`: the words of the command line, for messages that propose another."""
        self._typed = [*typed]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Ask for a dataset, unless the words after `--` name tests."""
        config.stash[TYPED] = self._typed
        if (
            config.args_source is not config.ArgsSource.ARGS
            and OptionReader(config).raw("data") is None
        ):
            raise pytest.UsageError(
                "osmosis eval needs a dataset: -d/--dataset FILE with -m/--agent MODULE:ATTR "
                "or --mcp DIR, and --model NAME, or osmosis_data, osmosis_agent and osmosis_model "
                "in the ini file"
            )


class ReportTaker(SessionGuard):
    """Sees to it that there is a report, and shows the terminal's lines once rollouts start."""

    def __init__(self, typed: Sequence[str], terminal: BufferedStream, spare: Path) -> None:
        super().__init__(typed)
        self._terminal = terminal
        self._spare = self._path = spare
        self._copy_to: Path | None = None
        self._before: tuple[int, ...] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Use the report that was asked for anyway, else a temporary one."""
        super().pytest_configure(config)
        given = OptionReader(config)
        if (asked := given.raw("output")) is None:
            self._use_spare(config)
        elif is_special(path := given.path("output", asked)):  # which cannot be read again
            self._copy_to = path
            self._use_spare(config)
        else:
            self._path = path
        self._before = _identity(self._path)

    def _use_spare(self, config: pytest.Config) -> None:
        config.option.osmosis_output = str(self._spare)
        setattr(config.option, TEMPORARY_OUTPUT, True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Stop buffering: later lines are progress, not the explanation of a usage error."""
        from pytest_osmosis.session.current import evaluation_of

        asked = evaluation_of(session.config)
        if asked is not None and asked.suites and not session.testsfailed:
            self._terminal.release()

    def report(self) -> str | None:
        """Return the report that this session wrote, if it did."""
        now = _identity(self._path)
        if now is None or now == self._before:
            return None
        if self._copy_to is not None:
            mode = None if self._path.stat().st_mode & 0o077 else 0o600  # it holds answers
            write_whole(self._copy_to, self._path.read_bytes(), mode=mode)
        return self._path.read_text("utf-8")


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def run_pytest(args: Sequence[str], *, guard: SessionGuard, api_key: str | None) -> int:
    """Run pytest with these arguments and the key in the environment; give its exit status."""
    with _process_of_pytest(args, api_key), in_own_words():
        return int(pytest.main(list(args), plugins=[guard]))


@contextmanager
def _process_of_pytest(args: Sequence[str], key: str | None) -> Iterator[None]:
    """Have the key in the environment, and this process as one that was started as pytest."""
    # Plugins read sys.argv (xdist sends it to its workers), and ours may hold a key.
    argv, sys.argv = sys.argv, ["pytest", *args]
    if key is not None:
        os.environ[KEY_VARIABLE] = key
    sets_signals = threading.current_thread() is threading.main_thread()
    sigterm = signal.signal(signal.SIGTERM, signal.SIG_DFL) if sets_signals else None
    try:
        yield
    finally:
        if sets_signals:
            signal.signal(signal.SIGTERM, sigterm)
        if key is not None:
            os.environ.pop(KEY_VARIABLE, None)
        sys.argv = argv
