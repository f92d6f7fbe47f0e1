"""The pass over a dataset file, and the selected rows that it leaves.

Puts the parts together: file, source, reading, selection. Does not know the formats themselves.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..escaping import counted
from .columns import Columns, RowCheck, TruthCheck, guessed_mapping
from .decoding import decode_checked, decode_numbers
from .errors import (
    DatasetError,
    EmptyDataset,
    NotJson,
    Problems,
    RecordError,
    UnclearDataset,
    WrongColumns,
    quote,
)
from .formats import DatasetFormat, RowSource
from .opening import open_dataset
from .rows import Row, safe_name
from .sampling import Part, Selection, draw, parse_rows, place_in, refuse_missing, window
from .validation import ChangedError, Reading, RowStore

if TYPE_CHECKING:
    from .conditions import Matching
    from .prompt_template import PromptTemplate
    from .shapes.shape import Shape

_SHAPED = 1_000
"""Rows whose truths say which scorer fits."""


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

    def partly_tasks(self) -> str | None:
        """Return what is wrong where only some rows have an object in the column `metadata`."""
        lacking = self._reading.without_task
        if not lacking or not self._reading.tasks:
            return None
        return (
            f"'metadata' is no object with something in it in {lacking.named(self._unit)}, but is "
            "one elsewhere"
        )

    def refuse_for(self, agent: str, *, takes: str, needs_task: bool) -> None:
        """Refuse an agent that would not get all of some rows; only of rows that were checked.

        `needs_task`: it is given the object in the column `metadata`, which all rows have, or none.

        Raises:
            DatasetError: with the first of these rows.
        """
        unit = self._unit
        if needs_task and (problem := self.partly_tasks()):
            raise DatasetError(
                f"{quote(self.path)}: {problem}; {agent} would read None there: "
                "give every row one, or none"
            )
        lacking = self._reading.without_question
        if takes in ("question", "text") and lacking:
            raise DatasetError(
                f"{quote(self.path)}: no question in {lacking.named(unit)}, and {agent} needs one: "
                "give every row a user_prompt, or use a workflow, which is given `ctx.metadata`"
            )
        if answered := self._reading.ends_answered:
            raise UnclearDataset(
                f"{quote(self.path)}: 'messages' end with an assistant's turn in "
                f"{answered.named(unit)}: that turn can be the truth, and no part of the prompt",
                f"add --osmosis-map {shlex.quote(self._columns.last_turn)}",
            )
        if takes == "text" and self._reading.lost:
            shown = "; ".join(
                f"{what} in {rows.named(unit)}" for what, rows in self._reading.lost.items()
            )
            raise DatasetError(
                f"{quote(self.path)}: {agent} takes one question as text, and 'messages' hold "
                f"{shown}: let its parameter be `messages`, which is given all of them"
            )

    @property
    def shape(self) -> Shape:
        """What the file probably is; of the scorer, by the truths that its rows have."""
        indices = self.row_indices[:_SHAPED]
        return shape_at(self.path).scored_by([self.row(index).own_truth for index in indices])

    @property
    def likely_truth(self) -> str | None:
        """The column that is probably meant as ground truth, where no row has one."""
        return self._columns.likely_truth()

    def row_name(self, row_index: int) -> str:
        """The row's unique name in node ids: `row-3`, or its id made safe, up to 100 characters."""
        row_id = None if self._ids is None else self.row_id(row_index)
        return f"row-{row_index}" if row_id is None else safe_name(row_id)

    def line(self, row_index: int) -> int | None:
        """The line of the file, from 1, where a row begins; None in a format without lines."""
        if self._unit != "line":
            return None
        return self._store.place(self._place(row_index))

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
    template: str | None = None,
    where: Sequence[str] = (),
    system_prompt: str | None = None,
    compared_by: Sequence[TruthCheck] = (),
    row_checks: Sequence[RowCheck] = (),
    validate: bool = True,
) -> Dataset:
    """The rows of a file that are selected; DatasetError when one of them is wrong.

    `rows`, as "3,7,10-20", names them; `sample`, as "10%" or "50", draws from the rows that offset
    and limit leave; `part` divides what is left then. `where`, as "lang=en", leaves out rows before
    any of these. `mapping` tells which column serves as which (see `Columns`), `template` is a
    Jinja2 template of the user prompt, `system_prompt` is that of rows without one. Rows outside
    the selection are not checked. Without `validate`, for a file that another process has checked,
    only places, names and the digest are made.
    """
    start, stop = window(offset, limit) if rows is None else (0, None)
    mapping = mapping or {}
    prompt = None if template is None else _prompt_template(template, path, mapping)
    guessed = {} if {"user_prompt", "messages"} & mapping.keys() else _guessed(path, prompt)
    if {*guessed.values()} & {*mapping.values()}:
        guessed = {}
    guessed = {role: column for role, column in guessed.items() if role not in mapping}
    with _explain_os_errors(path), ExitStack() as files, ExitStack() as undo:
        matching = _matching(path, where, {**guessed, **mapping}) if where else None
        source, kind = _source(path, files)
        columns = Columns(
            mapping,
            guessed=guessed,
            has_only_text=kind.has_only_text,
            system_prompt=system_prompt,
            template=prompt,
            compared_by=compared_by,
            row_checks=row_checks,
        )
        reading = Reading(RowStore(os.dup(source.descriptor)), columns)
        undo.callback(reading.store.close)
        drawn: Selection | None = None if rows is None else parse_rows(rows)
        if matching is not None:
            found = matching.rows[start:stop]
            drawn = found if drawn is None else _all_match(drawn, matching, path)
            start, stop = 0, None  # they have been taken into account
        if rows is None and sample is not None:
            whole = range(start, max(start, source.count(stop))) if drawn is None else drawn
            drawn = draw(sample, sample_seed, whole)
        problems = Problems(path, source.unit)
        scan = source.scan(drawn, start, stop, problems)
        header_of = path if kind.has_only_text else None
        _read(scan, source, reading, problems if validate else None, header_of=header_of)
        pairs = ", ".join(f"{role} <- {column}" for role, column in guessed.items())
        reading.notices += filter(None, [pairs, "" if matching is None else matching.summary])
        places = columns.empty_places() if validate else ()
        reading.notices += [f"nothing stands at {place} in any row" for place in places]
        reading.notices += [*source.notices, *reading.notice_double_ids(source.unit)]
        if rows is not None and drawn is not None:
            refuse_missing(drawn, len(reading.store), path, source.rows_total)
        if not len(reading.store):
            raise _empty(path, source.rows_total, offset, limit, matching)
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


def _prompt_template(text: str, path: Path, mapping: Mapping[str, str]) -> PromptTemplate:
    if beside := {"user_prompt", "messages"} & mapping.keys():
        shown = " and ".join(f"{mapping[name]}={name}" for name in sorted(beside))
        raise DatasetError(
            f"{quote(path)}: the prompt template makes the user prompt: leave it out, or the "
            f"map {shown}"
        )
    from .prompt_template import PromptTemplate, WrongTemplate  # brings Jinja2

    try:
        return PromptTemplate(text)
    except WrongTemplate as error:
        raise DatasetError(f"the prompt template: {error}") from None


def _matching(path: Path, where: Sequence[str], roles: Mapping[str, str]) -> Matching:
    """Return the rows for which all conditions hold."""
    from .conditions import Matching

    matching = Matching(where, roles)
    with ExitStack() as files:
        source, _ = _source(path, files)
        problems = Problems(path, source.unit)
        for place, _, raw in source.scan(None, 0, None, problems):
            try:
                record = decode_checked(raw)
            except RecordError as error:
                problems.add(place, f"{error}{_hint(error, raw, torn=source.torn)}")
            else:
                matching.look(record, partial(decode_numbers, raw))
        if found := problems.error():
            raise found
    if matching.total and (problem := matching.problem()):
        raise DatasetError(f"{quote(path)}: {problem}")
    return matching


def _all_match(rows: Selection, matching: Matching, path: Path) -> Selection:
    """Return named rows; raise DatasetError where the conditions leave one of them out."""
    matched = {*matching.rows}
    for row in rows:
        if row < matching.total and row not in matched:
            raise DatasetError(
                f"{quote(path)}: row {row} is named, and left out where {matching.text}: give "
                "one of them"
            )
    return rows


def _guessed(path: Path, prompt: PromptTemplate | None) -> dict[str, str]:
    """Return which columns play which role, as far as the first row leaves no doubt."""
    first = _first_records(path, 1)
    return guessed_mapping(first[0], prompt) if first else {}


def shape_at(path: Path) -> Shape:
    """Return what a file probably is, by its first rows; as far as they can be read."""
    from .shapes.search import SAMPLED, shape_of  # for files that do not fit, and previews

    return shape_of(_first_records(path, SAMPLED))


def _first_records(path: Path, count: int) -> list[dict[str, Any]]:
    """Return the first rows; up to the first that is wrong, which reading the file says."""
    records: list[dict[str, Any]] = []
    with _explain_os_errors(path), ExitStack() as files:
        source, _ = _source(path, files)
        for _, _, raw in source.scan(None, 0, count, Problems(path, source.unit)):
            try:
                records.append(decode_checked(raw))
            except RecordError:
                break
    return records


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
        for place, offset, raw in scan:
            reading.note(place, offset, raw)
        return
    for place, offset, raw in scan:
        try:
            reading.check(place, offset, raw)
        except WrongColumns as error:
            problems.add_columns(place, error)
            if header_of is not None:
                if problems.unclear is None:
                    raise DatasetError(f"{quote(header_of)}: {error}") from None
                break
        except RecordError as error:
            problems.add(place, f"{error}{_hint(error, raw, torn=source.torn)}")
    if missing := reading.columns.missing_name():
        raise DatasetError(f"{quote(problems.path)}: {missing}")
    is_all = not len(reading.store)
    if is_all and problems.unclear is not None:
        path = Path(problems.path)
        sentence = f"{quote(path)}: {problems.unclear.short}"
        raise UnclearDataset(sentence, shape_at(path).words())
    if found := problems.error(is_all=is_all):
        raise found


def _hint(error: RecordError, raw: bytes, *, torn: bool) -> str:
    if not isinstance(error, NotJson):
        return ""
    if raw.endswith(b","):
        return "; in JSON lines no comma stands behind a row"
    if raw.startswith((b"{'", b"['")):
        return "; it is what Python prints: write rows with json.dumps"
    return "; the line has no end, the file may be incomplete" if torn else ""


def _source(path: Path, files: ExitStack) -> tuple[RowSource, DatasetFormat]:
    file, kind = open_dataset(path)
    files.enter_context(file)
    return files.enter_context(closing(kind.open(file, path))), kind


def _empty(
    path: Path,
    rows_total: int | None,
    offset: int,
    limit: int | None,
    matching: Matching | None,
) -> EmptyDataset:
    if matching is not None and matching.total:
        return EmptyDataset(
            f"{quote(path)}: {matching.summary}; an offset of {offset} is past the last one"
        )
    if rows_total == 0:
        return EmptyDataset(f"{quote(path)}: has no rows")
    if limit == 0 or rows_total is None:
        return EmptyDataset(f"{quote(path)}: a limit of {limit} selects no row")
    return EmptyDataset(
        f"{quote(path)}: has {counted(rows_total, 'row')}; "
        f"an offset of {offset} is past the last one"
    )
