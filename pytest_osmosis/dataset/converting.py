"""Command lines that make a readable file of one that cannot be read as it is.

Knows names of encodings and how rows stand in columns; reads no file. What was unpacked, or has a
name that no terminal shows, has no command.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any


def as_utf8(path: str | Path, encoding: str) -> str:
    """Return the command that writes a text file again in UTF-8, beside it, or ""."""
    path = Path(path)
    if not path.is_file():
        return ""
    made = path.with_suffix(f".utf8{path.suffix}")
    return f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {quote(str(made))}"


def as_rows(path: str | Path, columns: dict[str, Any]) -> str:
    """Return the command that writes rows out of equally long columns, or "" for anything else.

    A column is a list, or an object with one member a row, as tables are often written.
    """
    values = list(columns.values())
    sizes = {len(value) if isinstance(value, (list, dict)) else 0 for value in values}
    if len(sizes) != 1 or 0 in sizes or not Path(path).is_file():
        return ""
    if all(isinstance(value, list) for value in values):
        each = "d.values()"
    elif all(isinstance(value, dict) and list(value) == list(values[0]) for value in values):
        each = "(c.values() for c in d.values())"
    else:
        return ""
    program = (
        "import json, sys; d = json.load(sys.stdin); "
        f"[print(json.dumps(dict(zip(d, row)))) for row in zip(*{each})]"
    )
    made = Path(path).with_suffix(".jsonl")
    return f'python -c "{program}" < {quote(str(path))} > {quote(str(made))}'
