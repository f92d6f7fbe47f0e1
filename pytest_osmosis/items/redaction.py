"""Secrets out of whatever pytest itself would show: reports of any item, and log records.

What the evaluation writes is redacted where it is made; here is what passes by it: tracebacks with
arguments and locals, captured output, logging of libraries at DEBUG.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest

from osmosis_ai.secret import redact

from .. import compat
from ..escaping import encodable


def redact_report(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Mask every secret in a report's traceback, sections and properties."""
    shown = report.longrepr
    if not (shown is None or isinstance(shown, tuple) or compat.is_failure_section(shown)):
        text = str(shown)
        masked = redact(text)
        if masked != text:
            report.longrepr = masked
    report.sections = [(title, redact(text)) for title, text in report.sections]
    if isinstance(report, pytest.TestReport):
        report.user_properties = [
            (name, redact(value) if isinstance(value, str) else value)
            for name, value in report.user_properties
        ]


class MaskedMessages:
    """A plugin: no secret in the text of a warning or an internal error, before it is shown."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: Any) -> None:
        """Mask the traceback in place: a hook of the user's may have raised it."""
        chain = getattr(excrepr, "chain", [(excrepr.reprtraceback,)])
        entries = [entry for traceback, *_ in chain for entry in traceback.reprentries]
        for shown in (*entries, *(getattr(entry, "reprlocals", None) for entry in entries)):
            if shown is not None:
                shown.lines = [redact(line) for line in shown.lines]

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Mask it in place; a masked one keeps its category, and is plain text.

        Nor has it half a character, which no worker can send.
        """
        text = str(warning_message.message)
        masked = encodable(redact(text))
        if masked != text:
            warning_message.message = masked


class LogFilter(logging.Filter):
    """Masks secrets in the message and the exception of every record that passes."""

    def __init__(self) -> None:
        super().__init__()
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, without its secrets."""
        message = _message(record)
        masked = redact(message)
        if masked != message:
            record.msg, record.args = masked, None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # wrong arguments: logging itself will say so
        return str(record.msg)
