"""The rows of a dataset, checked as an evaluation checks them, as a program.

`python -m osmosis_platform.datasets.row_check FILE ROWS` checks the first so many, and counts all.
It prints lines of JSON, of which the last holds: `row_count`, or the `error` of a file that is no
dataset. Where limits of the process or the disk are in the way, there may be none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.errors import DatasetError
from pytest_osmosis.dataset.formats import RowSource
from pytest_osmosis.dataset.opening import open_dataset


def main(path: str, rows: str) -> None:
    """Check the rows, and print what is known of them."""
    try:
        with _opened(Path(path)) as source:
            if source.rows_total is not None:  # Parquet says so itself
                _tell(row_count=source.rows_total)
        dataset = load_dataset(Path(path), limit=int(rows))
        if problem := dataset.partly_tasks():
            raise DatasetError(f"{problem}: give every row one, or none")
        total = dataset.rows_total
        if total is None:
            with _opened(Path(path)) as source:
                total = source.count(None)
        _tell(row_count=total)
    except DatasetError as error:
        if not _is_of_limits(error):
            _tell(error=str(error))
    except MemoryError:
        return


@contextmanager
def _opened(path: Path) -> Iterator[RowSource]:
    file, kind = open_dataset(path)
    with file, closing(kind.open(file, path)) as source:
        yield source


def _is_of_limits(error: DatasetError) -> bool:
    """Whether memory, the disk or a limit is at fault, and not the file."""
    cause = error.__context__
    return isinstance(cause, MemoryError) or getattr(cause, "errno", None) is not None


def _tell(**found: object) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
