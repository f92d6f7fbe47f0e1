"""The style and the script of the HTML report, from the files in `page/`, as one text each.

The script is made of modules: each file is one, and all are put into a single module in the order
of `MODULES`, without their imports and exports. So no two have a name of their top level in common.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FEATURES = Path(__file__).parents[1]
"""Where sections of features have their templates."""
FOLDER = Path(__file__).parent / "page"
STYLES = ("theme.css", "summary.css", "runs.css", "detail.css", "print.css")
MODULES = (
    "text.js",
    "data.js",
    "judge.js",
    "said.js",
    "diff.js",
    "filter.js",
    "table.js",
    "markdown.js",
    "json.js",
    "messages.js",
    "editor.js",
    "detail.js",
    "theme.js",
    "cells.js",
    "main.js",
)
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asset:
    """A text that stands in a page, and what its policy calls it."""

    text: str

    @property
    def source(self) -> str:
        """Return the text as a Content-Security-Policy names it: by its digest."""
        digest = hashlib.sha256(self.text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def style() -> Asset:
    """Return the style."""
    return Asset("\n" + "".join(_read(name) for name in STYLES))


@cache
def script() -> Asset:
    """Return the script."""
    modules = (_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in MODULES)
    return Asset("\n" + "".join(modules))


def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
