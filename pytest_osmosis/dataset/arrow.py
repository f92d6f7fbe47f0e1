"""Arrow values to JSON values, by one table.

    decimal                -> str                       timestamp -> ISO 8601, nanoseconds kept
    date, time             -> ISO 8601                  duration  -> seconds
    map                    -> object (string keys) or list of [key, value]
    list, struct           -> list, object              dictionary, extension -> what they stand for
    null, bool, number, string -> themselves
    bytes                  -> left as they are: the row is refused later

Knows pyarrow's types; does not know files or columns.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

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
