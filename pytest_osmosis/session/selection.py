"""What the command line selects, as far as it shows before anything is collected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..items.gates import is_gate
from ..spec import Keeping

_PARTS = {"keyword": "-k", "lf": "--lf", "stepwise": "--stepwise", "deselect": "--deselect"}
"""Options of pytest that select single items, by their names in `config.option`."""


def part(config: pytest.Config) -> str | None:
    """Return the argument that selects a part of an evaluation, if there is one."""
    for name, spelling in _PARTS.items():
        if getattr(config.option, name, None):
            return spelling
    return next((text for text in config.args if "::" in text and not is_gate(text)), None)


def keeping_of(config: pytest.Config, keeping: Keeping) -> Keeping:
    """Return how runs are kept: those of a part neither use nor change a whole evaluation."""
    selecting = part(config)
    if selecting is None:
        return keeping
    if keeping.reuse_option:
        raise pytest.UsageError(
            f"{keeping.reuse_option} uses the runs of whole evaluations, and {selecting} selects "
            "a part of one: give one of them"
        )
    return replace(keeping, journal=False)
