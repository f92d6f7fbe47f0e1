"""What marks the items of evaluations: a marker, and how the node ids of gates begin.

Sessions that evaluate nothing import this: it imports nothing itself.
"""

from __future__ import annotations

MARKER = "osmosis"
"""The marker of all items of an evaluation."""
ROOT = "gates"
"""What the node id of a gate begins with."""


def is_gate(nodeid: str) -> bool:
    """Return whether a node id is a gate's."""
    return nodeid.startswith(f"{ROOT}::")


def may_be_item(argument: str) -> bool:
    """Return whether an argument may be the node id of a gate, or of a run of a data file."""
    return "[run-" in argument or is_gate(argument)
