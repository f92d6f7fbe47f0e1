"""Text made fit to show: harmless for terminals, XML files and workflow logs; short paths."""

from __future__ import annotations

import re
from pathlib import Path

_COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def escape_control_chars(text: str) -> str:
    """Return text for a terminal or an XML file: control characters escaped, lines kept."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def escape_workflow_commands(text: str) -> str:
    """Return text in which GitHub Actions finds no workflow command."""
    return _COMMAND.sub(r"\1: ", text).replace("##[", "## [")


def shown_path(path: Path) -> str:
    """Return a path as people read it: from the current directory where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
