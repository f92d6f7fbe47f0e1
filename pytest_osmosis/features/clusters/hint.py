"""A hint that rows of a suite may belong together, where that would make its interval wider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...analysis.aggregate import CONFIDENCE, interval_of
from ...analysis.metrics import Metric, row_values
from ...analysis.score_table import clusters_of as numbered
from ...analysis.score_table import score_table_of
from ...dataset.decoding import brief
from ...dataset.errors import DatasetError
from .columns import WrongColumn, clusters_of, looks_like_clusters

if TYPE_CHECKING:
    from ...dataset.dataset import Dataset
    from ...suite_results import SuiteResult

FEWEST_ROWS = 20
MOST_ROWS = 5_000
"""More rows are not read once more for a hint."""
LEAST_WIDER = 1.1
"""How much wider the interval would be at least."""


def hint(suite: SuiteResult, dataset: Dataset) -> str | None:
    """Return which column makes the widest interval of the mean, and how wide; None: no column."""
    if not FEWEST_ROWS <= len(dataset) <= MOST_ROWS:
        return None
    try:
        rows = {index: dataset.row(index).extra for index in dataset.row_indices}
    except DatasetError:  # the file has changed meanwhile
        return None
    found = max(_wider(suite, rows), default=(0.0, "", 0))
    ratio, column, values = found
    if ratio < LEAST_WIDER:
        return None
    return (
        f"rows with one {brief(column)} may belong together ({values} values): with "
        f"--osmosis-cluster {column} the interval of the mean is {ratio:.1f} times as wide"
    )


def _wider(
    suite: SuiteResult, rows: Mapping[int, Mapping[str, Any]]
) -> Iterator[tuple[float, str, int]]:
    """Yield of each column that looks like one how much wider it makes the interval."""
    table = score_table_of(suite)
    metric = Metric("mean", None, suite.functions[0].name)
    values = row_values(metric, table)
    plain = interval_of(metric, values, table, CONFIDENCE)
    if plain is None or len(values) < len(table.rows) or plain.low == plain.high:
        return
    for column in dict.fromkeys(chain.from_iterable(rows.values())):
        cells = [row.get(column) for row in rows.values()]
        if not looks_like_clusters(cells, len(rows)):
            continue
        try:
            found = clusters_of(column, rows, rows.values())
        except WrongColumn:
            continue
        clusters = numbered(replace(suite.info, clusters=found), table.rows)
        wide = interval_of(metric, values, table, CONFIDENCE, clusters=clusters)
        if wide is not None:
            yield (wide.high - wide.low) / (plain.high - plain.low), column, len(found)
