"""Writes the files of the CI guide into a folder, where their schemas are checked.

python -m tests.pages.recipes FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from .blocks import ROOT, blocks


def main(folder: Path) -> None:
    """Write each block that is a file."""
    for block in blocks(ROOT / "docs" / "guides" / "ci.md"):
        if block.file:
            (path := folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
