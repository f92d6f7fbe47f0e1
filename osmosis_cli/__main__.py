"""The command: one line for Ctrl-C from its first moment, also while it imports."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        from .main import main as run

        run(args)
    except KeyboardInterrupt:
        sys.stderr.write("Error: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
