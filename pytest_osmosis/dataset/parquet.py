"""Parquet: rows read in record batches and written as JSON lines to an unnamed temporary file.

From there on they are rows like those of a JSONL file: read on demand, in bounded memory. Knows
pyarrow, imported only here; does not judge which columns a row needs.
"""

from __future__ import annotations

import json
import os
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from .decoding import brief
from .errors import DatasetError, Problems, shown
from .sampling import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_ROWS = 1024
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class ParquetSource:
    """An open parquet file as a source of rows."""

    unit: Literal["line", "row"] = "row"
    torn = False

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._path = shown(path)
        self._file = _opened(file, self._path)
        self._names: list[str] = self._file.schema_arrow.names
        self._refuse_double_columns()
        self.rows_total: int | None = self._file.metadata.num_rows
        self._spool = tempfile.TemporaryFile(prefix="osmosis-")  # noqa: SIM115 - closed with the source
        self.descriptor = self._spool.fileno()

    def count(self, stop: int | None) -> int:
        """How many rows there are before row `stop`."""
        total: int = self._file.metadata.num_rows
        return total if stop is None else min(stop, total)

    def scan(
        self, selection: Selection | None, start: int, stop: int | None, problems: Problems
    ) -> Iterator[tuple[int, int, bytes]]:
        """Row number, offset and bytes of the rows from start to stop, or of the selected ones."""
        rows = selection if selection is not None else range(start, self.count(stop))
        offset = 0
        for row, record in self._records(rows):
            try:
                raw = _encode(record).encode()
            except (TypeError, ValueError):
                problems.add(row, _unfit(record))
                continue
            self._spool.write(raw + b"\n")
            yield row, offset, raw
            offset += len(raw) + 1
        self._spool.flush()

    def close(self) -> None:
        """Close the spool; a duplicate of its descriptor keeps the rows."""
        self._file.close()
        self._spool.close()

    def _records(self, rows: Selection) -> Iterator[tuple[int, dict[str, Any]]]:
        batches = self._batches(rows)
        while True:
            try:
                taken, batch = next(batches)
                columns = [values(column) for column in batch.columns]
            except StopIteration:
                return
            except _broken() as error:
                raise _damaged(self._path, error) from None
            for at, row in enumerate(taken):
                yield (
                    row,
                    {name: column[at] for name, column in zip(self._names, columns, strict=True)},
                )

    def _batches(self, rows: Selection) -> Iterator[tuple[Selection, pa.RecordBatch]]:
        end = rows[-1] + 1 if rows else 0
        first = 0
        for group in range(self._file.metadata.num_row_groups):
            height = self._file.metadata.row_group(group).num_rows
            if _within(rows, first, first + height):
                for batch in self._file.iter_batches(batch_size=BATCH_ROWS, row_groups=[group]):
                    taken = _within(rows, first, first + batch.num_rows)
                    if len(taken) == batch.num_rows:
                        yield taken, batch
                    elif taken:
                        yield taken, batch.take([row - first for row in taken])
                    first += batch.num_rows
                    if first >= end:
                        return
            else:
                first += height

    def _refuse_double_columns(self) -> None:
        double = [brief(name) for name, times in Counter(self._names).items() if times > 1]
        if double:
            raise DatasetError(
                f"{self._path}: the column {', '.join(double)} is there more than once"
            )


def _opened(file: BinaryIO, path: str) -> pq.ParquetFile:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise DatasetError(f"{path}: needs `pip install pyarrow`") from None
    try:
        return pq.ParquetFile(file, page_checksum_verification=True)
    except _broken() as error:
        raise _damaged(path, error) from None


def _broken() -> tuple[type[Exception], ...]:
    """What pyarrow raises for bytes that are not, or no longer, parquet."""
    from pyarrow import ArrowException

    return (ArrowException, OSError, ValueError, OverflowError, KeyError, MemoryError)


def _damaged(path: str, error: Exception) -> DatasetError:
    reason = brief(" ".join(str(error).split()) or type(error).__name__, quoted=False, longest=160)
    return DatasetError(
        f"{path}: cannot be read as parquet, it may be damaged or incomplete: {reason}"
    )


def _within(rows: Selection, first: int, end: int) -> Selection:
    return rows[bisect_left(rows, first) : bisect_left(rows, end)]


def _unfit(record: dict[str, Any]) -> str:
    for name, value in record.items():
        try:
            _encode(value).encode()
        except TypeError:
            return f"the column {brief(name)} holds bytes, which JSON has not; store it as text"
        except ValueError:
            return f"the column {brief(name)} holds NaN or an infinite number; use null or a string"
    return "cannot be written as JSON"


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)


def values(column: pa.Array) -> list[Any]:
    """The values of a column, each one fit for JSON unless it is bytes or not finite."""
    if not _needs_care(column.type):
        plain: list[Any] = column.to_pylist()
        return plain
    return [_value(scalar) for scalar in column]


def _needs_care(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_struct(kind) or _is_list(kind):
        return any(_needs_care(kind.field(i).type) for i in range(kind.num_fields))
    return not (
        types.is_null(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _value(scalar: pa.Scalar[Any]) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    for is_kind, convert in _table():
        if is_kind(kind):
            return convert(scalar)
    return scalar.as_py()


def _table() -> tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]:
    from pyarrow import BaseExtensionType, types

    return (
        (types.is_map, _map),
        (_is_list, lambda scalar: [_value(item) for item in scalar.values]),
        (types.is_struct, lambda scalar: {name: _value(item) for name, item in scalar.items()}),
        (types.is_decimal, lambda scalar: str(scalar.as_py())),
        (types.is_timestamp, lambda scalar: _timestamp(scalar.value, scalar.type)),
        (types.is_date, lambda scalar: scalar.as_py().isoformat()),
        (types.is_time, lambda scalar: _time(scalar.value, scalar.type.unit)),
        (types.is_duration, lambda scalar: scalar.value / _PER_SECOND[scalar.type.unit]),
        (types.is_dictionary, lambda scalar: _value(scalar.value)),
        (lambda kind: isinstance(kind, BaseExtensionType), lambda scalar: _value(scalar.value)),
    )


def _map(scalar: Any) -> Any:
    pairs = [tuple(_value(part) for part in pair.values()) for pair in scalar.values]
    mapping = dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else {}
    return mapping if len(mapping) == len(pairs) else [list(pair) for pair in pairs]


def _timestamp(value: int, kind: Any) -> str:
    seconds, fraction = divmod(value, _PER_SECOND[kind.unit])
    moment = _EPOCH + timedelta(seconds=seconds)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}{_fraction(fraction, kind.unit)}"
    if kind.tz is None:
        return text
    if kind.tz.upper() in ("UTC", "Z", "+00:00"):
        return f"{text}+00:00"
    return _local(moment, kind, fraction)


def _local(moment: datetime, kind: Any, fraction: int) -> str:
    from pyarrow.lib import string_to_tzinfo

    local = moment.replace(tzinfo=timezone.utc).astimezone(string_to_tzinfo(kind.tz)).isoformat()
    return f"{local[:19]}{_fraction(fraction, kind.unit)}{local[19:]}"


def _time(value: int, unit: str) -> str:
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    return f"{_EPOCH + timedelta(seconds=seconds):%H:%M:%S}{_fraction(fraction, unit)}"


def _fraction(fraction: int, unit: str) -> str:
    if not fraction:
        return ""
    return f".{fraction:0{len(str(_PER_SECOND[unit])) - 1}d}"
