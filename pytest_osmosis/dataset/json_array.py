"""JSON: the elements of a file that is one array of objects, or an object with one.

Objects one behind the other are rows too. Finds where each element begins and ends; does not judge
what it holds.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Literal

from .decoding import DEEPEST, brief, json_type
from .errors import DatasetError, EmptyDataset, Problems, quote
from .sampling import Selection

_BOM = b"\xef\xbb\xbf"
_BLANKS = re.compile(r"[ \t\r\n]*")
_raw_decode = json.JSONDecoder().raw_decode


class JsonArraySource:
    """An open JSON file as a source of rows; its text is held while a scan runs, not longer."""

    unit: Literal["line", "row"] = "row"
    torn = False

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = quote(path)
        self.rows_total: int | None = None
        self.notices: list[str] = []
        self.descriptor = file.fileno()

    def count(self, stop: int | None) -> int:
        """How many rows there are before row `stop`."""
        text, _ = self._text()
        return sum(1 for _ in islice(self._elements(text), stop))

    def scan(
        self, selection: Selection | None, start: int, stop: int | None, problems: Problems
    ) -> Iterator[tuple[int, int, bytes]]:
        """Row number, offset and bytes of the rows from start to stop, or of the selected ones."""
        wanted = None if selection is None else set(selection)
        text, offset = self._text()
        reached = row = 0
        for row, (begin, end) in enumerate(self._elements(text)):
            if row == stop:
                return
            if row >= start and (wanted is None or row in wanted):
                offset += len(text[reached:begin].encode())
                raw = text[begin:end].encode()
                yield row, offset, raw
                offset += len(raw)
                reached = end
            self.rows_total = row + 1
        self.rows_total = self.rows_total or 0

    def close(self) -> None:
        """Close the file; a duplicate of its descriptor keeps the rows."""
        self._file.close()

    def _text(self) -> tuple[str, int]:
        self._file.seek(0)
        raw = self._file.read()
        skipped = len(_BOM) if raw.startswith(_BOM) else 0
        try:
            return raw[skipped:].decode(), skipped
        except UnicodeDecodeError as error:
            place = skipped + error.start
            line, byte = raw.count(b"\n", 0, place) + 1, raw[place]
            raise DatasetError(
                f"{self._path}: is not UTF-8 (byte 0x{byte:02x} at line {line}): save as UTF-8"
            ) from None

    def _elements(self, text: str) -> Iterator[tuple[int, int]]:
        at, row = _skip(text, 0), 0
        if text[at : at + 1] == "{":
            end = self._end(text, at, row)
            if text[_skip(text, end) :].startswith("{"):
                yield from self._lines(text, at)
                return
            self._refuse_rest(text, _skip(text, end))
            at = self._wrapped(text, at)
            yield from self._array(text, at, is_whole=False)
            return
        if text[at : at + 1] != "[":
            raise self._not_an_array(text, at)
        if ".jsonl" in os.path.basename(self._path):
            self._note("it is read as one JSON array")
        yield from self._array(text, at, is_whole=True)

    def _lines(self, text: str, at: int) -> Iterator[tuple[int, int]]:
        """Yield objects one behind the other, as JSONL has them."""
        self._note("it is read as JSON lines")
        row = 0
        while at < len(text):
            end = self._end(text, at, row)
            yield at, end
            at, row = _skip(text, end), row + 1

    def _wrapped(self, text: str, at: int) -> int:
        """Return where the one list of objects begins among the members of an object."""
        lists: dict[str, int] = {}
        names: set[str] = set()
        member = _skip(text, at + 1)
        while text[member : member + 1] == '"':
            name, end = _raw_decode(text, member)
            if name in names:
                raise DatasetError(f"{self._path}: the key {brief(name)} is there twice")
            names.add(name)
            begin = _skip(text, _skip(text, end) + 1)  # behind the colon
            value, end = _raw_decode(text, begin)
            if isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
                lists[name] = begin
            member = _skip(text, end)
            if text[member : member + 1] == ",":
                member = _skip(text, member + 1)
        if len(lists) != 1:
            from .converting import as_rows  # only for a mistake

            shown = ", ".join(map(brief, lists))
            hint = f"; it has several lists of objects: {shown}" if lists else ""
            command = None if lists else as_rows(self._path, json.loads(text))
            if command:
                hint = f"; of its columns, rows are made by\n  {command}"
            raise DatasetError(
                f"{self._path}: is an object; expected an array of objects, or an object with one"
                + hint
            )
        [(name, begin)] = lists.items()
        self._note(f"its rows are the list {brief(name)}")
        return begin

    def _note(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)

    def _array(self, text: str, at: int, *, is_whole: bool) -> Iterator[tuple[int, int]]:
        at, row = _skip(text, at + 1), 0
        if text[at : at + 1] == "]":
            return
        while True:
            end = self._end(text, at, row)
            yield at, end
            row += 1
            at = _skip(text, end)
            if text[at : at + 1] == "]":
                if is_whole:
                    self._refuse_rest(text, _skip(text, at + 1))
                return
            if text[at : at + 1] != ",":
                raise self._broken(text, at, "Expecting ',' delimiter")
            at = _skip(text, at + 1)

    def _end(self, text: str, at: int, row: int) -> int:
        try:
            _, end = _raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise self._broken(text, error.pos, error.msg) from None
        except RecursionError:
            raise DatasetError(
                f"{self._path}: row {row}: nested too deeply (more than {DEEPEST} levels)"
            ) from None
        except ValueError:
            raise DatasetError(
                f"{self._path}: row {row}: holds a number with too many digits; quote it"
            ) from None
        return end

    def _refuse_rest(self, text: str, at: int) -> None:
        if at < len(text):
            raise self._broken(text, at, "Extra data")

    def _broken(self, text: str, at: int, what: str) -> DatasetError:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        hint = "; the file may be incomplete" if at >= len(text.rstrip()) else ""
        return DatasetError(f"{self._path}:{line}: not JSON: {what} (column {column}){hint}")

    def _not_an_array(self, text: str, at: int) -> DatasetError:
        if at == len(text):
            return EmptyDataset(f"{self._path}: has no rows (only blanks)")
        try:
            value, _ = _raw_decode(text, at)
        except (ValueError, RecursionError):
            return self._broken(text, at, "Expecting an array of objects")
        return DatasetError(f"{self._path}: is {json_type(value)}; expected an array of objects")


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
