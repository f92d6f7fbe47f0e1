"""One row of a dataset: what is run, what reports show of it, and its name in node ids.

Knows neither files nor columns: `columns` makes rows of records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from osmosis_ai.secret import masked

from .json_copy import json_copy

if TYPE_CHECKING:
    from ..suite_results import RowData


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the dataset, ready to be run."""

    row_index: int
    """Position in the file, from 0, whatever was selected."""
    row_id: str | None
    """The value of the `id` column, when all selected rows have one that is unique."""
    system_prompt: str
    """May be empty; of a row with `messages`, the text of its first system message."""
    user_prompt: str
    """Of a row with `messages`, the text of its last user message."""
    ground_truth: Any
    """Text, or what else the row has; a number as text, as the file writes it."""
    extra: dict[str, Any]
    """The other columns, under the names that the file gives them."""
    own_names: Mapping[str, Any] = field(default_factory=dict)
    """What plays a role, by the name of its column where that is another."""
    own_truth: Any = field(default=None, compare=False)
    """The ground truth as it stands in the file, a number as a number."""
    messages: Sequence[dict[str, Any]] | None = None
    """The conversation that stands for both prompts, where the row has one."""
    task: dict[str, Any] | None = None
    """The object in the column `metadata`, which is all that workflows and graders get of it."""

    def opening(self) -> list[dict[str, Any]]:
        """Return the messages that its rollouts begin with; the caller may change them.

        A row with a task need not have any.
        """
        if self.messages is not None:
            return [_without_nulls(message) for message in self.messages]
        prompts = (("system", self.system_prompt), ("user", self.user_prompt))
        return [{"role": role, "content": text} for role, text in prompts if text]

    def metadata(self) -> dict[str, Any]:
        """What eval functions get: the extra columns and the named ones."""
        given = {} if self.messages is None else {"messages": list(self.messages)}
        return {
            **self.extra,
            **self.own_names,
            **given,
            "system_prompt": self.system_prompt,
            "user_prompt": self.user_prompt,
            "ground_truth": self.ground_truth,
        }

    def describe(self) -> RowData:
        """Return what reports show of it: its prompt, its ground truth and its other columns."""
        from ..suite_results import RowData  # for reports alone

        shown = {
            "user_prompt": self.user_prompt or _as_text(self.task),
            "ground_truth": None if self.ground_truth is None else truth_text(self.ground_truth),
            "columns": {name: _cell(value) for name, value in self.extra.items()},
            "system_prompt": self.system_prompt,
            "own_names": {name: _cell(value) for name, value in self.own_names.items()},
        }
        return RowData(**masked(shown))


def _as_text(task: dict[str, Any] | None) -> str:
    """Return what stands for the question of a row that has none."""
    return "" if task is None else json.dumps(task, ensure_ascii=False)


def truth_text(truth: Any) -> str:
    """Return a ground truth as reports show it: text as it is, all else as JSON."""
    return truth if isinstance(truth, str) else json.dumps(truth, ensure_ascii=False)


def _cell(value: Any) -> str | float | bool | None:
    """Return what fits one cell: a number, a boolean or null as it is, all else as text."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a column of structs has in every message, given or not."""
    return {
        name: json_copy(value)
        for name, value in message.items()
        if value is not None or name == "content"
    }


LONGEST = 100
_MARK = 9  # "~" and eight hexadecimal digits
_UNSAFE = str.maketrans({"[": "(", "]": ")", "/": "_", "\\": "_"})


def safe_name(row_id: str) -> str:
    """The id, made safe as a part of a node id; two different ids never get the same name.

    An id that must be changed (brackets, slashes, `::`, control characters, too long) ends in a
    short hash of the original.
    """
    name = row_id.strip().translate(_UNSAFE).replace("::", ":.")
    if not name.isprintable():
        name = "".join(c if c.isprintable() else _escaped(c) for c in name)
    name = name.rstrip(":")
    if name == row_id and len(name) <= LONGEST and "~" not in name:
        return name
    mark = hashlib.sha256(row_id.encode("utf-8", "surrogatepass")).hexdigest()[: _MARK - 1]
    return f"{name[: LONGEST - _MARK]}~{mark}"


def _escaped(character: str) -> str:
    return f"(u{ord(character):04x})"
