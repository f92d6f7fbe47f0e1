"""What `-k` selects, by names, before anything is collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from .. import compat
from ..errors import ConfigurationError, NoRows
from ..items.marks import MARKER, ROOT

if TYPE_CHECKING:
    from ..spec import EvalSpec


def matches(words: str, names: Iterable[str]) -> bool:
    """Return whether an item that stands below these names, its own among them, is selected."""
    lower = [name.lower() for name in names]
    return compat.evaluate(words, lambda word: any(word.lower() in name for name in lower))


def has_unknown_word(words: str, known: Iterable[Iterable[str]]) -> bool:
    """Return whether a word is in none of the names that are known."""
    names = " ".join(name.lower() for each in known for name in each)
    said = set(re.findall(r"[^\s()]+", words.lower())) - {"and", "or", "not"}
    return any(word not in names for word in said)


def any_row_matches(config: pytest.Config, words: str) -> bool:
    """Return whether a run or a gate is selected; True where rows cannot be read."""
    from ..options import build_spec

    spec = build_spec.build(config)
    gates = ({ROOT, MARKER, gate} for gate in spec.deciding.gates)
    runs = (names for each in spec.evals for names in _names_of_runs(config, each))
    try:
        return any(matches(words, names) for names in chain(gates, runs))
    except (ConfigurationError, NoRows):
        return True  # reported when the session starts


def _names_of_runs(config: pytest.Config, spec: EvalSpec) -> Iterator[set[str]]:
    from ..hookspecs import hooks_of
    from ..items import nodeids
    from ..rollouts.prepare import read_rows

    dataset = read_rows(spec, validate=False, hooks=hooks_of(config))
    inside = spec.data.is_relative_to(config.rootpath)
    path = spec.data.relative_to(config.rootpath).parts if inside else (spec.data.name,)
    for row_index in dataset.row_indices:
        row = dataset.row_name(row_index)
        for run_index in range(spec.n):
            yield {*path, MARKER, nodeids.item_name(row, run_index, spec.label)}
