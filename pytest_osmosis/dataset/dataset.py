"""The pass over a dataset file, and the selected rows that it leaves.

Puts the parts together: file, source, reading, selection. Does not know the formats themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..escaping import counted
from .columns import Columns, RowCheck, TruthCheck, guessed_mapping
from .decoding import decode_checked, decode_numbers
from .errors import (
    DatasetError,
    EmptyDataset,
    NotJson,
    Problems,
    RecordError,
    WrongColumns,
    quote,
)
from .formats import DatasetFormat, RowSource
from .opening import open_dataset
from .rows import Row, safe_name
from .sampling import Part, Selection, draw, parse_rows, place_in, refuse_missing, window
from .validation import ChangedError, Reading, RowStore


class Dataset:
    """The selected rows of one file, in the file's order; may be read from several threads."""

    __slots__ = (
        "_columns", "_ids", "_place", "_reading", "_store", "_unit", "digest", "notices", "path",
        "row_indices", "rows_total",
    )  # fmt: skip

    def __init__(
        self,
        path: Path,
        *,
        rows_total: int | None,
        reading: Reading,
        selection: Selection,
        unit: str,
        part: Part | None = None,
    ) -> None:
        """`unit` is what rows are counted in: "line" or "row"."""
        self.path = path
        self.rows_total = rows_total
        """The rows in the file; None when reading stopped at the limit."""
        self.digest = reading.digest(selection)
        """sha256 over the selected rows; for a whole plain JSONL file what `sha256sum` prints.

        All parts of a selection have the same: that of the selection.
        """
        self._columns = reading.columns
        self._reading = reading
        self.notices: Sequence[str] = reading.notices
        """What users should know of how the file was read, a sentence each."""
        self._unit = unit
        self._ids = reading.ids()
        self._place = place_in(selection)
        self._store = reading.store
        taken = range(len(selection)) if part is None else part.of(len(selection))
        self.row_indices: Sequence[int] = selection[taken.start : taken.stop : taken.step]
        """The number in the file, from 0, of each row; ascending."""

    def __len__(self) -> int:
        return len(self.row_indices)

    def refuse_for(self, agent: str, *, needs_question: bool, needs_task: bool) -> None:
        """Refuse an agent that would get nothing of some rows; only of rows that were checked.

        `needs_task`: it is given the object in the column `metadata`, which all rows have, or none.

        Raises:
            DatasetError: with the first of these rows.
        """
        lacking, unit = self._reading.without_task, self._unit
        if needs_task and lacking and self._reading.tasks:
            raise DatasetError(
                f"{quote(self.path)}: 'metadata' is no object with something in it in "
                f"{lacking.named(unit)}, but is one elsewhere; {agent} would read None there: "
                "give every row one, or none"
            )
        lacking = self._reading.without_question
        if needs_question and lacking:
            raise DatasetError(
                f"{quote(self.path)}: no question in {lacking.named(unit)}, and {agent} needs one: "
                "give every row a user_prompt, or use a workflow, which is given `ctx.metadata`"
            )

    @property
    def likely_truth(self) -> str | None:
        """The column that is probably meant as ground truth, where no row has one."""
        return self._columns.likely_truth()

    def row_name(self, row_index: int) -> str:
        """The row's unique name in node ids: `row-3`, or its id made safe, up to 100 characters."""
        row_id = None if self._ids is None else self.row_id(row_index)
        return f"row-{row_index}" if row_id is None else safe_name(row_id)

    def row(self, row_index: int) -> Row:
        """Return one of the rows.

        Raises:
            DatasetError: when the file has changed since it was loaded.
        """
        try:
            place = self._place(row_index)
            raw = self._store.fetch(place)
            record = decode_checked(raw)
            row_id = None if self._ids is None else self._ids[place]
            return self._columns.row(record, row_index, row_id, partial(decode_numbers, raw))
        except (ChangedError, RecordError):
            raise DatasetError(
                f"{quote(self.path)}: row {row_index} has changed since the session began"
            ) from None

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as they stand in the file, while it is what it was when it was loaded."""
        for row_index in self.row_indices:
            yield decode_checked(self._store.fetch(self._place(row_index)))

    def row_digest(self, row_index: int) -> str:
        """A short digest of one row as it was loaded, to tell which rows of a file have changed."""
        return self._store.digest(self._place(row_index))

    def row_id(self, row_index: int) -> str | None:
        """The row's id, where the rows have one."""
        return None if self._ids is None else self._ids[self._place(row_index)]


def load_dataset(  # noqa: PLR0913  # one for each thing that options say
    path: Path,
    *,
    offset: int = 0,
    limit: int | None = None,
    rows: str | None = None,
    sample: str | None = None,
    sample_seed: int = 0,
    part: Part | None = None,
    mapping: Mapping[str, str] | None = None,
    system_prompt: str | None = None,
    compared_by: Sequence[TruthCheck] = (),
    row_checks: Sequence[RowCheck] = (),
    validate: bool = True,
) -> Dataset:
    """The rows of a file that are selected; DatasetError when one of them is wrong.

    `rows`, as "3,7,10-20", names them; `sample`, as "10%" or "50", draws from the rows that offset
    and limit leave; `part` divides what is left then. `mapping` tells which column serves as which
    (see `Columns`), `system_prompt` is that of rows without one. Rows outside the selection are not
    checked. Without `validate`, for a file that another process has checked, only places, names
    and the digest are made.
    """
    start, stop = window(offset, limit) if rows is None else (0, None)
    mapping = mapping or {}
    guessed = {} if {"user_prompt", "messages"} & mapping.keys() else _guessed(path)
    if {*guessed.values()} & {*mapping.values()}:
        guessed = {}
    guessed = {role: column for role, column in guessed.items() if role not in mapping}
    with _explain_os_errors(path), ExitStack() as files, ExitStack() as undo:
        source, kind = _source(path, files)
        columns = Columns(
            mapping,
            guessed=guessed,
            has_only_text=kind.has_only_text,
            system_prompt=system_prompt,
            compared_by=compared_by,
            row_checks=row_checks,
        )
        reading = Reading(RowStore(os.dup(source.descriptor)), columns)
        undo.callback(reading.store.close)
        drawn = None if rows is None else parse_rows(rows)
        if drawn is None and sample is not None:
            drawn = draw(sample, sample_seed, range(start, max(start, source.count(stop))))
        problems = Problems(path, source.unit)
        scan = source.scan(drawn, start, stop, problems)
        header_of = path if kind.has_only_text else None
        _read(scan, source, reading, problems if validate else None, header_of=header_of)
        if guessed:
            pairs = ", ".join(f"{role} <- {column}" for role, column in guessed.items())
            reading.notices.append(pairs)
        for place in columns.empty_places() if validate else ():
            reading.notices.append(f"nothing stands at {place} in any row")
        reading.notices += [*source.notices, *reading.notice_double_ids(source.unit)]
        if rows is not None and drawn is not None:
            refuse_missing(drawn, len(reading.store), path, source.rows_total)
        if not len(reading.store):
            raise _empty(path, source.rows_total, offset, limit)
        undo.pop_all()
    selection = drawn if drawn is not None else range(start, start + len(reading.store))
    if part is not None and not part.of(len(selection)):
        raise EmptyDataset(
            f"{quote(path)}: shard {part} of {counted(len(selection), 'row')} has no row; "
            "use fewer shards"
        )
    return Dataset(
        path,
        rows_total=source.rows_total,
        reading=reading,
        selection=selection,
        unit=source.unit,
        part=part,
    )


def _guessed(path: Path) -> dict[str, str]:
    """Return which columns play which role, as far as the first row leaves no doubt."""
    with _explain_os_errors(path), ExitStack() as files:
        source, _ = _source(path, files)
        for _, _, raw in source.scan(None, 0, 1, Problems(path, source.unit)):
            try:
                return guessed_mapping(decode_checked(raw))
            except RecordError:
                break  # reading the file says what is wrong
    return {}


@contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DatasetError(f"{quote(path)}: cannot be read: {reason}") from None


def _read(
    scan: Iterator[tuple[int, int, bytes]],
    source: RowSource,
    reading: Reading,
    problems: Problems | None,
    *,
    header_of: Path | None,
) -> None:
    """Take all rows; with `problems`, check each and raise what is wrong with any.

    `header_of`: the file, where one header names the columns of all rows.
    """
    if problems is None:
        for _, offset, raw in scan:
            reading.note(offset, raw)
        return
    for place, offset, raw in scan:
        try:
            reading.check(place, offset, raw)
        except WrongColumns as error:
            if header_of is not None:
                raise DatasetError(f"{quote(header_of)}: {error}") from None
            problems.add_columns(place, str(error))
        except RecordError as error:
            problems.add(place, f"{error}{_hint(error, raw, torn=source.torn)}")
    if found := problems.error(is_all=not len(reading.store)):
        raise found


def _hint(error: RecordError, raw: bytes, *, torn: bool) -> str:
    if not isinstance(error, NotJson):
        return ""
    if raw.startswith(b"["):
        return "; a file that is one JSON array must be named .json"
    return "; the line has no end, the file may be incomplete" if torn else ""


def _source(path: Path, files: ExitStack) -> tuple[RowSource, DatasetFormat]:
    file, kind = open_dataset(path)
    files.enter_context(file)
    return files.enter_context(closing(kind.open(file, path))), kind


def _empty(path: Path, rows_total: int | None, offset: int, limit: int | None) -> EmptyDataset:
    if rows_total == 0:
        return EmptyDataset(f"{quote(path)}: has no rows")
    if limit == 0 or rows_total is None:
        return EmptyDataset(f"{quote(path)}: a limit of {limit} selects no row")
    return EmptyDataset(
        f"{quote(path)}: has {counted(rows_total, 'row')}; "
        f"an offset of {offset} is past the last one"
    )
