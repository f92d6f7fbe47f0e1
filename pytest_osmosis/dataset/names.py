"""Names of rows for node ids, JUnit and the terminal.

Knows which characters are safe there; does not know where an id comes from.
"""

from __future__ import annotations

import hashlib

LONGEST = 100
_MARK = 9  # "~" and eight hexadecimal digits
_UNSAFE = str.maketrans({"[": "(", "]": ")", "/": "_", "\\": "_"})


def safe_name(row_id: str) -> str:
    """The id, made safe as a part of a node id; two different ids never get the same name.

    An id that must be changed (brackets, slashes, `::`, control characters, too long) ends in a
    short hash of the original.
    """
    name = row_id.strip().translate(_UNSAFE).replace("::", ":.")
    if not name.isprintable():
        name = "".join(c if c.isprintable() else _escaped(c) for c in name)
    name = name.rstrip(":")
    if name == row_id and len(name) <= LONGEST and "~" not in name:
        return name
    mark = hashlib.sha256(row_id.encode("utf-8", "surrogatepass")).hexdigest()[: _MARK - 1]
    return f"{name[: LONGEST - _MARK]}~{mark}"


def _escaped(character: str) -> str:
    return f"(u{ord(character):04x})"
