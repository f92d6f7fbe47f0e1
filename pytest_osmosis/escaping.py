"""Text made harmless for terminals, XML files and workflow logs."""

from __future__ import annotations

import re

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
