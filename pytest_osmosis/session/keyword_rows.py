"""Whether `-k` selects a run or a gate, as far as names tell, before anything is collected."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest

from ..errors import ConfigurationError, NoRows
from ..hookspecs import hooks_of
from ..items import nodeids
from ..items.marks import MARKER, ROOT
from ..options import build_spec
from ..rollouts.prepare import read_rows
from ..spec import EvalSpec
from .keywords import matches


def any_row_matches(config: pytest.Config, words: str) -> bool:
    """Return whether a run or a gate is selected; True where rows cannot be read."""
    spec = build_spec.build(config)
    gates = ({ROOT, MARKER, gate} for gate in spec.deciding.gates)
    runs = (names for each in spec.evals for names in _names_of_runs(config, each))
    try:
        return any(matches(words, names) for names in chain(gates, runs))
    except (ConfigurationError, NoRows):
        return True  # reported when the session starts


def _names_of_runs(config: pytest.Config, spec: EvalSpec) -> Iterator[set[str]]:
    dataset = read_rows(spec, validate=False, hooks=hooks_of(config))
    inside = spec.data.is_relative_to(config.rootpath)
    path = spec.data.relative_to(config.rootpath).parts if inside else (spec.data.name,)
    for row_index in dataset.row_indices:
        row = dataset.row_name(row_index)
        for run_index in range(spec.n):
            yield {*path, MARKER, nodeids.item_name(row, run_index, spec.label)}
