"""Suite-level properties of the JUnit file: an evaluation's figures, by name."""

from __future__ import annotations

from collections.abc import Iterator

from ..results import EvalResult


def properties(result: EvalResult) -> Iterator[tuple[str, str]]:
    """Name and value of each property; with several suites the names begin with the suite's."""
    for suite in result.suites:
        prefix = f"{suite.info.name}::" if len(result.suites) > 1 else ""
        yield f"{prefix}osmosis_model", suite.info.model
        yield f"{prefix}osmosis_runs", str(suite.finished)
        for function in suite.functions:
            for figure in function.figures.values():
                yield f"{prefix}osmosis_{figure.field}[{function.name}]", repr(figure.value)
            yield f"{prefix}osmosis_missing[{function.name}]", str(function.missing)
