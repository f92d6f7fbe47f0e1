"""The import path of older projects for the command: deprecated, run `osmosis`.

The command is looked for among the installed ones: this package knows none.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points

from .deprecation import warn_deprecated

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `osmosis` with these arguments, by default the process's; return the exit status."""
    warn_deprecated("osmosis_ai.cli", "run the command osmosis, or python -m osmosis_cli")
    command = next(iter(entry_points(group="console_scripts", name="osmosis")), None)
    if command is None:
        raise RuntimeError("the command osmosis is not installed: pip install pytest-osmosis")
    try:
        command.load()(argv)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
