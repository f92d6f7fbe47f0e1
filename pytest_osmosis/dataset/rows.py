"""One record to one Row: which column is which, and what each must hold.

Knows the three named columns and `id`; does not know files, nor where a record stood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .decoding import brief, json_type
from .errors import RecordError

PROMPTS = ("system_prompt", "user_prompt")
NAMED = (*PROMPTS, "ground_truth")
_PLANS_KEPT = 512
_COLUMNS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the dataset, ready to be run."""

    row_index: int
    """Position in the file, from 0, whatever was selected."""
    row_id: str | None
    """The value of the `id` column, when all selected rows have one that is unique."""
    system_prompt: str
    user_prompt: str
    ground_truth: str | None
    extra: dict[str, Any]
    """The other columns, under the names that the file gives them."""

    def metadata(self) -> dict[str, Any]:
        """What eval functions get: the extra columns and the three named ones."""
        return {
            **self.extra,
            "system_prompt": self.system_prompt,
            "user_prompt": self.user_prompt,
            "ground_truth": self.ground_truth,
        }


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the named columns are among one set of keys."""

    system: str
    user: str
    truth: str | None
    id: str | None
    extra: tuple[str, ...]
    problem: str | None


class Columns:
    """Finds the columns of records; remembers the answer for each set of keys it has met."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def check(self, record: dict[str, Any]) -> str | None:
        """The row's id, if it has a usable one; RecordError when a column is missing or wrong."""
        plan = self._plan(record)
        if plan.problem is not None:
            raise RecordError(plan.problem)
        system, user = record[plan.system], record[plan.user]
        truth = None if plan.truth is None else record[plan.truth]
        if (
            type(system) is not str
            or type(user) is not str
            or not (truth is None or type(truth) is str)
            or not system
            or not user
            or system.isspace()
            or user.isspace()
        ):
            raise RecordError(_wrong_values(system, user, truth))
        return None if plan.id is None else _usable_id(record[plan.id])

    def row_id(self, record: Mapping[str, Any]) -> str | None:
        """The row's id, if it has a usable one; checks nothing else."""
        plan = self._plan(record)
        return None if plan.id is None else _usable_id(record[plan.id])

    def row(self, record: dict[str, Any], row_index: int, row_id: str | None) -> Row:
        """The row of a record that `check` has accepted."""
        plan = self._plan(record)
        if plan.problem is not None:
            raise RecordError(plan.problem)
        return Row(
            row_index=row_index,
            row_id=row_id,
            system_prompt=record[plan.system],
            user_prompt=record[plan.user],
            ground_truth=None if plan.truth is None else record[plan.truth],
            extra={name: record[name] for name in plan.extra},
        )

    def _plan(self, record: Mapping[str, Any]) -> _Plan:
        keys = tuple(record)
        plan = self._plans.get(keys)
        if plan is None:
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.clear()
            plan = self._plans[keys] = _planned(keys)
        return plan


def _planned(keys: tuple[str, ...]) -> _Plan:
    found: dict[str, str] = {}
    problems: list[str] = []
    for key in keys:
        name = key.strip().lower()
        if name not in NAMED and name != "id":
            continue
        if name in found:
            problems.append(
                f"the columns {brief(found[name])} and {brief(key)} collide: case is ignored"
            )
        found[name] = key
    missing = [name for name in PROMPTS if name not in found]
    if missing:
        problems.append(_missing(missing, keys, taken=found.values()))
    named = {found[name] for name in NAMED if name in found}
    return _Plan(
        system=found.get("system_prompt", ""),
        user=found.get("user_prompt", ""),
        truth=found.get("ground_truth"),
        id=found.get("id"),
        extra=tuple(key for key in keys if key not in named),
        problem="; ".join(problems) or None,
    )


def _missing(missing: list[str], keys: tuple[str, ...], taken: Iterable[str]) -> str:
    names = " and ".join(f"'{name}'" for name in missing)
    verb = "is" if len(missing) == 1 else "are"
    columns = ", ".join(_plain(key) for key in keys[:_COLUMNS_SHOWN]) or "none"
    if len(keys) > _COLUMNS_SHOWN:
        columns += f" and {len(keys) - _COLUMNS_SHOWN} more"
    free = [key for key in keys if key not in set(taken)]
    guess = next((close for name in missing if (close := _closest(name, free))), None)
    hint = f"; did you mean {brief(guess)}?" if guess else ""
    return f"{names} {verb} missing (columns: {columns}{hint})"


def _closest(name: str, keys: list[str]) -> str | None:
    from difflib import get_close_matches  # only for a mistake

    by_form = {key.strip().lower().replace("-", "_").replace(" ", "_")[:100]: key for key in keys}
    matches = get_close_matches(name, by_form, n=1, cutoff=0.6)
    return by_form[matches[0]] if matches else None


def _plain(key: str) -> str:
    return brief(key, quoted=not key or key != key.strip() or "," in key)


def _wrong_values(system: object, user: object, truth: object) -> str:
    problems = [
        problem
        for name, value in (("system_prompt", system), ("user_prompt", user))
        if (problem := _wrong_prompt(name, value))
    ]
    if truth is not None and type(truth) is not str:
        problems.append(_wrong_truth(truth))
    return "; ".join(problems)


def _wrong_prompt(name: str, value: object) -> str | None:
    if type(value) is not str:
        return f"'{name}' is {json_type(value)}; expected a non-empty string"
    if not value:
        return f"'{name}' is an empty string; expected a non-empty one"
    return f"'{name}' holds only blanks; expected text" if value.isspace() else None


def _wrong_truth(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = brief(str(value), quoted=False)
        return f"'ground_truth' is the number {shown}; quote it: 1.10 is not \"1.10\""
    return f"'ground_truth' is {json_type(value)}; expected a string or null"


def _usable_id(value: object) -> str | None:
    if type(value) is int:
        return str(value)
    if type(value) is str and value and not value.isspace():
        return value
    return None


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
