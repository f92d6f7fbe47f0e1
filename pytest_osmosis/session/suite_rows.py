"""The rows of a suite once its runs have ended: for gates on a slice, and for tables.

Knows where rows are read from; does not know what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..dataset.errors import DatasetError

if TYPE_CHECKING:
    from ..dataset.dataset import Dataset
    from ..rollouts.suite import Suite
    from ..run_result import SuiteInfo
    from ..spec import SessionSpec
    from ..suite_results import EvalResult, RowResult, SuiteResult


def rows_of(info: SuiteInfo, suites: Mapping[str, Suite], spec: SessionSpec) -> Dataset:
    """Return the rows of a suite; those of a test function may be known to the workers alone."""
    suite = suites.get(info.name)
    return _reloaded(info, spec) if suite is None else suite.dataset


def with_row_data(result: EvalResult, suites: Mapping[str, Suite], spec: SessionSpec) -> EvalResult:
    """Return the result, each row with what the dataset holds of it, without secrets.

    A row of a file that has changed since the session began is left without.
    """

    def filled(row: RowResult, data: Dataset) -> RowResult:
        try:
            return replace(row, data=data.row(row.row_index).describe())
        except DatasetError:
            return row

    def of(suite: SuiteResult) -> SuiteResult:
        try:
            data = rows_of(suite.info, suites, spec)
        except DatasetError:
            return suite
        return suite.with_rows(partial(filled, data=data))

    return result.with_suites(of)


def _reloaded(info: SuiteInfo, spec: SessionSpec) -> Dataset:
    from ..dataset.columns import mapping_of
    from ..dataset.dataset import load_dataset
    from ..dataset.sampling import parse_part

    settings = info.settings
    part = None if spec.defaults is None else spec.defaults.part
    return load_dataset(
        Path(info.data),
        offset=settings.get("offset", 0),
        limit=settings.get("limit"),
        rows=settings.get("rows"),
        mapping=mapping_of(settings.get("map", ())),
        template=settings.get("prompt_template"),
        where=settings.get("where", ()),
        system_prompt=settings.get("system_prompt"),
        sample=settings.get("sample"),
        sample_seed=settings.get("sample_seed", 0),
        part=parse_part(part) if part else None,
        validate=False,
    )
