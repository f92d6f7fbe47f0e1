"""What was typed on a terminal, in the place of standard input."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A terminal on which this has been typed."""

    def isatty(self) -> bool:
        """Return True."""
        return True
