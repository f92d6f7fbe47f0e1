"""Parquet: rows read in record batches and written as JSON lines to an unnamed temporary file.

From there on they are rows like those of a JSONL file: read on demand, in bounded memory. Knows
pyarrow, imported only here; does not judge which columns a row needs.
"""

from __future__ import annotations

import json
import math
import os
import struct
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from .decoding import brief
from .errors import DatasetError, Problems, quote
from .sampling import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_ROWS = 1024


class ParquetSource:
    """An open parquet file as a source of rows."""

    unit: Literal["line", "row"] = "row"
    torn = False

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._path = quote(path)
        self._file = _opened(file, self._path)
        self._names: list[str] = self._file.schema_arrow.names
        self._refuse_double_columns()
        self.notices: list[str] = []
        self._taken: list[str] | None = None
        """The columns that are read, where some are left out."""
        self._leave_out_bytes()
        self._nan: Counter[str] = Counter()
        self._said = len(self.notices)
        """The notices but for that of NaN, which is the last."""
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
                # By name: "a" and "a.b" are one place to Parquet, which gives more than is asked.
                columns = [values(batch.column(name)) for name in self._names]
                self._note_nan(batch)
            except StopIteration:
                return
            except _broken() as error:
                raise _damaged(self._path, error) from None
            for at, row in enumerate(taken):
                yield (
                    row,
                    {name: column[at] for name, column in zip(self._names, columns, strict=True)},
                )

    def _note_nan(self, batch: pa.RecordBatch) -> None:
        """Count the NaN of each column, which are read as null."""
        from pyarrow import compute, types

        for name in self._names:
            column = batch.column(name)
            if types.is_floating(column.type) and not types.is_float16(column.type):
                self._nan[name] += compute.sum(compute.is_nan(column)).as_py() or 0
        shown = [f"{brief(name)} ({times:,})" for name, times in self._nan.items() if times]
        if shown:
            self.notices[self._said :] = [f"NaN is read as null: {', '.join(shown)}"]

    def _batches(self, rows: Selection) -> Iterator[tuple[Selection, pa.RecordBatch]]:
        end = rows[-1] + 1 if rows else 0
        first = 0
        for group in range(self._file.metadata.num_row_groups):
            height = self._file.metadata.row_group(group).num_rows
            if _within(rows, first, first + height):
                for batch in self._file.iter_batches(
                    batch_size=BATCH_ROWS, row_groups=[group], columns=self._taken
                ):
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

    def _leave_out_bytes(self) -> None:
        schema = self._file.schema_arrow
        left_out = [name for name in self._names if _holds_bytes(schema.field(name).type)]
        if left_out:
            self._names = [name for name in self._names if name not in left_out]
            self._taken = self._names
            shown = ", ".join(map(brief, left_out))
            columns = "column" if len(left_out) == 1 else "columns"
            self.notices.append(f"left out: the {columns} {shown} of bytes")

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
            return f"the column {brief(name)} holds what JSON has no type for; store it as text"
        except ValueError:
            return f"the column {brief(name)} holds NaN or an infinite number; use null or a string"
    return "cannot be written as JSON"


def _holds(kind: pa.DataType, *are_such: Callable[[pa.DataType], bool]) -> bool:
    """Return whether values of a type are such ones, or hold some."""
    from pyarrow import types

    if types.is_struct(kind):
        return any(_holds(field.type, *are_such) for field in kind)
    if _is_list(kind):
        return _holds(kind.value_type, *are_such)
    return any(is_such(kind) for is_such in are_such)


def _holds_bytes(kind: pa.DataType) -> bool:
    from pyarrow import types

    return _holds(kind, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)


def _is_list(kind: pa.DataType) -> bool:
    from pyarrow import types

    are_such = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_such(kind) for is_such in are_such)


def _float_values(found: list[float | None], kind: pa.DataType) -> list[float | None]:
    """Return floats as JSON can hold them: NaN is null, a narrow one the shortest of its kind."""
    from pyarrow import types

    found = [None if value is None or math.isnan(value) else value for value in found]
    if types.is_float64(kind):
        return found
    code = "e" if types.is_float16(kind) else "f"
    return [value if value is None else _shortest(value, code) for value in found]


def _with_floats(value: Any, kind: pa.DataType) -> Any:
    """Return a value with the floats within it as `_float_values` has them."""
    from pyarrow import types

    if types.is_floating(kind):
        return _float_values([value], kind)[0]
    if isinstance(value, dict) and types.is_struct(kind):
        return {field.name: _with_floats(value[field.name], field.type) for field in kind}
    if isinstance(value, list) and _is_list(kind):
        return [_with_floats(each, kind.value_type) for each in value]
    return value


def _shortest(value: float, code: str) -> float:
    """Return the number of fewest digits that is `value` as a float of that many bytes."""
    if math.isinf(value):
        return value
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    packed = struct.pack(code, value)
    return next((float(text) for text in texts if _packed(code, text) == packed), value)


def _packed(code: str, text: str) -> bytes | None:
    try:
        return struct.pack(code, float(text))
    except OverflowError:  # rounded up beyond the largest
        return None


def values(column: pa.Array) -> list[Any]:
    """The values of a column, each one that `_encode` takes unless it is bytes or not finite."""
    from pyarrow import types

    fit = _to_microseconds(column.type)
    found: list[Any] = (column if fit == column.type else column.cast(fit, safe=False)).to_pylist()
    if types.is_floating(column.type):
        return _float_values(found, column.type)
    if _holds(column.type, types.is_floating):
        return [_with_floats(value, column.type) for value in found]
    if types.is_map(column.type):
        return [None if pairs is None else _mapping(pairs) for pairs in found]
    return found


def _to_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type without nanoseconds, which Python's own dates and times do not have."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_struct(kind):
        return pa.struct([each.with_type(_to_microseconds(each.type)) for each in kind])
    if types.is_list(kind):
        return pa.list_(_to_microseconds(kind.value_type))
    if getattr(kind, "unit", None) != "ns":
        return kind
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if types.is_time(kind) else pa.duration("us")


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    """Return an object where JSON can hold one: the keys are strings, each there once."""
    mapping = dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else {}
    return mapping if len(mapping) == len(pairs) else pairs


def _as_json(value: object) -> str | float:
    """Return what JSON has no type for as text, and a duration in seconds."""
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_json
).encode
