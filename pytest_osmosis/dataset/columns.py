"""One record to one Row: which column is which, and what each must hold.

Knows the named columns and `id`; does not know files, nor where a record stood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from osmosis_ai.messages import text_of

from .column_names import ASSERTIONS, NOT_ALONE, QUESTIONS, SYSTEM_PROMPTS, TRUTHS, plain
from .decoding import brief, decode, is_blank, json_type
from .errors import RecordError, UnclearColumns, WrongColumns
from .places import Place, find_place, with_places
from .rows import Row

if TYPE_CHECKING:
    from .prompt_template import PromptTemplate

PROMPTS = ("system_prompt", "user_prompt")
MESSAGES = "messages"
TRUTH = "ground_truth"
LABEL = "label"
"""Stands for `ground_truth` where there is none."""
METADATA = "metadata"
"""Holds the task of a row as an object, for workflows; such a row needs no prompt."""
NAMED = (*PROMPTS, MESSAGES, TRUTH, "id")
"""What a column may serve as."""
_OPTIONAL = ("system_prompt", TRUTH, "id")
NONE = "none"
"""In the place of the column that serves as one of these: there is none."""
TruthCheck = tuple[str, Callable[[Any], tuple[str, str] | None]]
"""An eval function's name, and what it says is wrong with a ground truth: the fault and a hint."""
RowCheck = Callable[[Any, Mapping[str, Any]], str | None]
"""What is wrong with a ground truth, as it stands in the file, and its row: a sentence."""
_LEAVE_OUT = f"; leave such rows out: --osmosis-where '{TRUTH}!='"
_PLANS_KEPT = 512
_COLUMNS_SHOWN = 12
_USUAL = {
    "user_prompt": dict.fromkeys(map(plain, QUESTIONS)),
    "system_prompt": dict.fromkeys(map(plain, SYSTEM_PROMPTS)),
    TRUTH: dict.fromkeys(map(plain, TRUTHS)),
}
_NOT_ALONE = frozenset(map(plain, ("user_prompt", MESSAGES, METADATA, TRUTH, *NOT_ALONE)))
_NO_TRUTH = frozenset(map(plain, (METADATA, TRUTH, LABEL)))
"""Columns beside which no truth is guessed."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the named columns are among one set of keys."""

    system: str | None
    """None: no system message is sent."""
    user: str | None
    """None: the row has messages, or a task alone."""
    messages: str | None
    truth: str | None
    label: str | None
    """The column that stands for the ground truth, where there is no such column."""
    id: str | None
    metadata: str | None
    extra: tuple[str, ...]
    paths: tuple[Place, ...]
    """The places within a row that play a role."""
    own_names: tuple[str, ...]
    """The columns that play a role under another name than its own."""
    problem: WrongColumns | None
    answers: bool = False
    """Whether the truth stands in the last of the messages, which is none of the prompt then."""


class CheckedRow(NamedTuple):
    """What a row has."""

    row_id: str | None
    """Its id, if it has a usable one."""
    has_task: bool
    """An object in the column `metadata`."""
    has_question: bool
    """A prompt, or messages."""
    lost: str = ""
    """What its messages have beyond one question as text."""
    ends_answered: bool = False
    """Whether its messages end with an assistant's turn."""


class Columns:
    """Finds the columns of records; remembers the answer for each set of keys it has met."""

    def __init__(
        self,
        mapping: Mapping[str, str] | None = None,
        *,
        has_only_text: bool = False,
        system_prompt: str | None = None,
        template: PromptTemplate | None = None,
        compared_by: Sequence[TruthCheck] = (),
        row_checks: Sequence[RowCheck] = (),
        guessed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`mapping`: the column that serves as each named one; `guessed`: others by the first row.

        With `has_only_text` an empty ground truth is none: such a format has no null.
        `system_prompt` is that of records without one, which need not have the column then;
        `template` makes the user prompt, in the place of columns that would be it;
        `compared_by`: the eval functions that need every ground truth; `row_checks`: those that
        need further columns.
        """
        self._row_checks = row_checks
        self._compared_by = compared_by
        self._template = template
        self._seen: dict[str, None] = {}
        """The columns of all records."""
        self._system_prompt = system_prompt
        self._mapping = {**guessed, **(mapping or {})}
        self._guessed = guessed
        self.last_turn = ""
        """What makes the last turn of messages the truth, where it is an assistant's."""
        self._reached: set[str] = set()
        """The places within rows where something stood."""
        self._has_only_text = has_only_text
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def check(self, record: dict[str, Any]) -> CheckedRow:
        """Return what a row has; RecordError when a column is missing or wrong."""
        plan = self._plan(record)
        if plan.problem is not None:
            raise plan.problem
        if plan.paths:
            record = with_places(record, plan.paths)
            self._reached.update(p.text for p in plan.paths if record[p.text] is not None)
        has_task = plan.metadata is not None and _task(record[plan.metadata]) is not None
        has_question, lost, ends_answered = True, "", False
        if plan.messages is not None:
            from .chat import lost_as_text  # few datasets have conversations

            messages = self._chat(plan, record)
            lost, ends_answered = lost_as_text(messages), messages[-1]["role"] == "assistant"
            if ends_answered:
                text = "content" if "content" in record[plan.messages][-1] else "value"
                self.last_turn = f"{plan.messages}[-1].{text}={TRUTH}"
        else:
            user = None if plan.user is None else record[plan.user]
            if self._template is not None:
                user = self._template.render(record)
            has_question = bool(user)
            if user is None and plan.user is None and not has_task:
                is_text = isinstance(record[plan.metadata or METADATA], str)
                kind = UnclearColumns if is_text else RecordError
                raise kind(_no_task(plan.metadata, record))
            system = None if plan.system is None else record[plan.system]
            if system is None:
                system = self._system_prompt or ""
            _check_prompts(system, user, needs_question=not has_task)
        if self._compared_by:
            self._check_truth(plan, record)
        for refuse in self._row_checks:
            truth = _own_truth(plan, record)
            if fault := refuse(truth, record):
                about_truth = fault.startswith(f"'{TRUTH}' is") and is_blank(truth)
                has_column = plan.truth is not None or plan.label is not None
                raise RecordError(fault + (_LEAVE_OUT if about_truth and has_column else ""))
        row_id = None if plan.id is None else _usable_id(record[plan.id])
        return CheckedRow(row_id, has_task, has_question, lost, ends_answered)

    def _chat(self, plan: _Plan, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of a row, without the turn that is its truth."""
        from .chat import as_chat, wrong_messages

        messages: list[dict[str, Any]] = as_chat(record[plan.messages or ""])
        if problem := wrong_messages(messages):
            raise RecordError(problem)
        if not plan.answers:
            return messages
        if messages[-1]["role"] != "assistant" or len(messages) == 1:
            raise RecordError(
                "the last of 'messages' is the truth here, but is no answer of an assistant to "
                "what stands before it"
            )
        return messages[:-1]

    def _check_truth(self, plan: _Plan, record: dict[str, Any]) -> None:
        truth = own = _own_truth(plan, record)
        if self._has_only_text and not own:
            truth = None
        elif type(own) in (int, float):
            truth = str(own)
        has_column = plan.truth is not None or plan.label is not None
        for name, refuse in self._compared_by:
            if is_blank(truth):
                what, hint = "missing" if truth is None else "blank", ""
                if has_column:
                    hint = _LEAVE_OUT
                fault = (f"is {what}", hint)
            elif (found := refuse(truth)) is None:
                continue
            else:
                fault = found
            sentence = f"'{TRUTH}' {fault[0]}, and {name} compares with it"
            if has_column:
                raise RecordError(sentence + fault[1])
            raise UnclearColumns(sentence)

    def row_id(self, record: Mapping[str, Any]) -> str | None:
        """The row's id, if it has a usable one; checks nothing else."""
        plan = self._plan(record)
        if plan.id is None:
            return None
        return _usable_id(with_places(record, plan.paths)[plan.id])

    def likely_truth(self) -> str | None:
        """The column that is probably meant as ground truth, where no record has one."""
        plans = self._plans.values()
        if any(plan.truth is not None or plan.label is not None for plan in plans):
            return None
        free = {plain(key): key for plan in plans for key in plan.extra}
        usual = next((free[name] for name in _USUAL[TRUTH] if name in free), None)
        return usual or _closest(TRUTH, free.values())

    def row(
        self,
        record: dict[str, Any],
        row_index: int,
        row_id: str | None,
        written: Callable[[], Mapping[str, Any]],
    ) -> Row:
        """The row of a record that `check` has accepted; `written` has its numbers as text."""
        plan = self._plan(record)
        if plan.problem is not None:
            raise plan.problem
        if plan.paths:
            record = with_places(record, plan.paths)
        messages = None if plan.messages is None else self._chat(plan, record)
        if messages is not None:
            from .chat import last_user_text, system_text

            system, user = system_text(messages), last_user_text(messages)
        else:
            given = None if plan.system is None else record[plan.system]
            system = (self._system_prompt or "") if given is None else given
            user = "" if plan.user is None else record[plan.user] or ""
            if self._template is not None:
                user = self._template.render(record)
        truth = own = _own_truth(plan, record)
        if self._has_only_text and not own:
            truth = None
        elif type(own) in (int, float):
            truth = str(with_places(written(), plan.paths)[plan.truth or plan.label or ""])
        return Row(
            row_index=row_index,
            row_id=row_id,
            system_prompt=system,
            user_prompt=user,
            ground_truth=truth,
            extra={name: record[name] for name in plan.extra},
            own_names={name: record[name] for name in plan.own_names},
            own_truth=own,
            messages=messages,
            task=None if plan.metadata is None else _task(record[plan.metadata]),
        )

    def _plan(self, record: Mapping[str, Any]) -> _Plan:
        keys = tuple(record)
        plan = self._plans.get(keys)
        if plan is None:
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.clear()
            self._seen.update(dict.fromkeys(keys))
            plan = _planned(keys, self._mapping, self._guessed, self._template)
            if self._guessed and _leaves_doubt(keys, self._template):
                plan = replace(plan, problem=_doubt(keys, self._guessed))
            self._plans[keys] = plan
        return plan

    def missing_name(self) -> str | None:
        """Return what is wrong where the map or the template names what no record had."""
        keys = tuple(self._seen)
        names = {_plain_name(key) for key in keys}
        for role, column in self._mapping.items() if keys else ():
            is_there = _plain_name(column) in names or find_place(column, keys) is not None
            if not is_there and column != NONE and role in _OPTIONAL:
                return _not_there(column, role, keys)
        missing = [] if self._template is None else self._template.missing(keys)
        if not missing:
            return None
        shown = columns_shown(keys, missing)
        return f"the prompt template: no row has a column {brief(missing[0])} ({shown})"

    def empty_places(self) -> list[str]:
        """Return the places that play a role, where nothing stood in any row that was checked."""
        paths = dict.fromkeys(path.text for plan in self._plans.values() for path in plan.paths)
        return [text for text in paths if text not in self._reached]


def _own_truth(plan: _Plan, record: Mapping[str, Any]) -> Any:
    """Return the ground truth as it stands in the file, or None."""
    column = plan.label if plan.truth is None else plan.truth
    truth = None if column is None else record[column]
    return text_of(truth) if plan.answers and isinstance(truth, list) else truth


def guessed_mapping(
    record: Mapping[str, Any], template: PromptTemplate | None = None
) -> dict[str, str]:
    """Return which columns are the question and the truth, where a row leaves no doubt.

    That is one column of text by the name of a question, at most one by that of a truth, and no
    other that holds a list or an object, or what a question alone would leave out. Beside a
    template, which is the question, only what it does not print can be the truth.
    """
    if _leaves_doubt(record, template):
        return {}
    shown = frozenset() if template is None else template.names
    truths = [key for key in record if plain(key) in _USUAL[TRUTH] and key not in shown]
    if template is not None:
        return {TRUTH: truths[0]} if len(truths) == 1 else {}
    if any(isinstance(record[key], list | dict) for key in record if key not in truths):
        return {}
    questions = [
        key
        for key, value in record.items()
        if plain(key) in _USUAL["user_prompt"] and isinstance(value, str)
    ]
    if len(questions) != 1 or len(truths) > 1:
        return {}
    guessed = {"user_prompt": questions[0]}
    if truths:
        guessed[TRUTH] = truths[0]
    return guessed


def _leaves_doubt(keys: Iterable[str], template: PromptTemplate | None = None) -> bool:
    """Return whether a column is there beside which none can be guessed."""
    beside = _NOT_ALONE if template is None else _NO_TRUTH
    names = {*keys}
    return ASSERTIONS in names or not beside.isdisjoint(map(plain, names))


def parse_map(text: str) -> tuple[str, str]:
    """Return what "question=user_prompt" names: the column and what it serves as.

    Raises:
        ValueError: when it names nothing that there is.
    """
    column, found, name = text.rpartition("=")
    name = name.strip().lower()
    if not found or name not in NAMED:
        guess = _closest(name, NAMED) if found else None
        raise ValueError(
            "expected COLUMN=NAME, such as question=user_prompt; NAME is one of "
            + ", ".join(NAMED)
            + (f"; did you mean {guess!r}?" if guess else "")
        )
    column = column.strip()
    if not column or (column == NONE and name not in _OPTIONAL):
        raise ValueError(
            f"expected the column that serves as {name}; {', '.join(_OPTIONAL)} may have none"
        )
    return column, name


def mapping_of(texts: Iterable[str]) -> dict[str, str]:
    """Return column by what it serves as; ValueError when two serve as the same."""
    mapping: dict[str, str] = {}
    for column, name in map(parse_map, texts):
        if name in mapping:
            raise ValueError(
                f"the columns {brief(mapping[name])} and {brief(column)} cannot both be {name}"
            )
        mapping[name] = column
    return mapping


def _planned(
    keys: tuple[str, ...],
    mapping: Mapping[str, str],
    guessed: Mapping[str, str],
    template: PromptTemplate | None,
) -> _Plan:
    problems: list[str] = []
    by_name: dict[str, str] = {}
    for key in keys:
        name = _plain_name(key)
        if name not in NAMED and name != LABEL:
            by_name.setdefault(name, key)
            continue
        if name in by_name:
            problems.append(
                f"the columns {brief(by_name[name])} and {brief(key)} collide: case is ignored"
            )
        by_name[name] = key
    found = {name: by_name[name] for name in (*NAMED, LABEL) if name in by_name}
    paths: list[Place] = []
    if template is not None:
        problems += _beside(template, found)
    for name, column in mapping.items():
        found.pop(name, None)
        if column in keys:
            found[name] = column
        elif _plain_name(column) in by_name:
            found[name] = by_name[_plain_name(column)]
        elif (path := find_place(column, keys)) is not None:
            found[name] = path.text
            paths.append(path)
        elif not ({name} & {*_OPTIONAL, *guessed}):  # which may be absent in some rows
            problems.append(_not_there(column, name, keys))
    if "user_prompt" in mapping and MESSAGES not in mapping:
        found.pop(MESSAGES, None)  # then it is data like any other
    problem = WrongColumns("; ".join(problems)) if problems else None
    if template is None and (missing := _missing(found, keys, mapping)) is not None:
        problem = WrongColumns(f"{problem}; {missing}") if problem else missing
    named = {found[name] for name in (*PROMPTS, MESSAGES, TRUTH) if name in found}
    return _Plan(
        system=found.get("system_prompt"),
        user=found.get("user_prompt"),
        messages=found.get(MESSAGES),
        truth=found.get(TRUTH),
        label=None if TRUTH in found else found.get(LABEL),
        id=found.get("id"),
        metadata=METADATA if METADATA in keys and METADATA not in named else None,
        extra=tuple(key for key in keys if key not in named),
        paths=tuple(paths),
        own_names=tuple(
            key
            for name, key in found.items()
            if key in named and key in keys and _plain_name(key) != name
        ),
        problem=problem,
        answers=_is_last_of(found.get(TRUTH), found.get(MESSAGES), paths),
    )


def _beside(template: PromptTemplate, found: dict[str, str]) -> list[str]:
    """Take what would be the prompt from the roles: with a template it is data like any other."""
    found.pop("user_prompt", None)
    messages = found.pop(MESSAGES, None)
    if messages is None or template.names & {messages, "row"}:
        return []
    return [f"'{messages}' would be the prompt, but for the prompt template: leave out one"]


def _is_last_of(truth: str | None, messages: str | None, places: Sequence[Place]) -> bool:
    """Return whether the truth stands in the last of the messages."""
    by_text = {place.text: place.parts for place in places}
    if truth not in by_text or messages is None:
        return False
    begins = (*by_text.get(messages, (messages,)), -1)
    return by_text[truth][: len(begins)] == begins


def _plain_name(key: str) -> str:
    return key.strip().lower()


def _doubt(keys: tuple[str, ...], guessed: Mapping[str, str]) -> UnclearColumns:
    maps = " ".join(f"--osmosis-map {column}={name}" for name, column in guessed.items())
    more = f" ({_columns(keys, None)}), as it is in the first row; try {maps}"
    return UnclearColumns("it is not clear which column is what", more)


def _not_there(column: str, name: str, keys: tuple[str, ...]) -> str:
    shown = columns_shown(keys, [column])
    return f"there is no column {brief(column)} to serve as {name} ({shown})"


def _missing(
    found: Mapping[str, str], keys: tuple[str, ...], mapping: Mapping[str, str]
) -> WrongColumns | None:
    if MESSAGES in found:
        beside = [found[name] for name in PROMPTS if name in found]
        if not beside:
            return None
        names = " and ".join(f"'{name}'" for name in beside)
        return WrongColumns(
            f"'{found[MESSAGES]}' stands for both prompts: leave out {names}, or it"
        )
    free = [key for key in keys if key not in set(found.values())]
    missing = [name for name in PROMPTS if name not in found and name not in mapping]
    if METADATA in free or ("user_prompt" not in missing and not _is_mistyped(missing, free)):
        return None  # a task stands for the question, and no row needs a system message
    if not _is_mistyped(["system_prompt"], free):
        missing = ["user_prompt"]
    names = " and ".join(f"'{name}'" for name in missing)
    verb = "is" if len(missing) == 1 else "are"
    return UnclearColumns(f"{names} {verb} missing", f" ({_columns(keys, _guess(missing, free))})")


def _is_mistyped(missing: Collection[str], free: Collection[str]) -> bool:
    """Return whether a column is probably meant as the system prompt, which may be missing."""
    return "system_prompt" in missing and any(_plain_name(key).startswith("sys") for key in free)


def _task(value: Any) -> dict[str, Any] | None:
    """Return the object in the column `metadata`, also where it is written as text."""
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except RecordError:
            return None
    return value if isinstance(value, dict) and value else None


def _no_task(column: str | None, record: Mapping[str, Any]) -> str:
    """Return what is wrong with a row that has neither a question nor a task."""
    value = None if column is None else record[column]
    if isinstance(value, str):
        with contextlib.suppress(RecordError):
            value = decode(value.encode())
    shown = {"{}": "an empty object", "''": "an empty text"}.get(repr(value), json_type(value))
    return (
        f"'{METADATA}' is {shown}; a row without 'user_prompt' needs an object there, "
        "with something in it"
    )


def columns_shown(keys: tuple[str, ...], missing: Iterable[str]) -> str:
    """Return the columns that there are, and the one that was probably meant."""
    return _columns(keys, _guess(missing, keys))


def _columns(keys: tuple[str, ...], guess: str | None) -> str:
    columns = ", ".join(_plain(key) for key in keys[:_COLUMNS_SHOWN]) or "none"
    if len(keys) > _COLUMNS_SHOWN:
        columns += f" and {len(keys) - _COLUMNS_SHOWN} more"
    hint = f"; did you mean {brief(guess)}?" if guess else ""
    return f"columns: {columns}{hint}"


def _guess(missing: Iterable[str], free: Collection[str]) -> str | None:
    return next((close for each in missing if (close := _closest(each, free))), None)


def _closest(name: str, keys: Collection[str]) -> str | None:
    from difflib import get_close_matches  # only for a mistake

    by_form = {_plain_name(key).replace("-", "_").replace(" ", "_")[:100]: key for key in keys}
    matches = get_close_matches(name, by_form, n=1, cutoff=0.6)
    return by_form[matches[0]] if matches else None


def _plain(key: str) -> str:
    return brief(key, quoted=not key or key != key.strip() or "," in key)


def _check_prompts(system: object, user: object, *, needs_question: bool) -> None:
    if (
        type(system) is str
        and type(user) is str
        and user
        and not system.isspace()
        and not user.isspace()
    ):
        return
    prompts = {"system_prompt": system}
    if user or needs_question:
        prompts["user_prompt"] = user
    problems = [
        problem
        for name, value in prompts.items()
        if (problem := _wrong_prompt(name, value, may_be_empty=name == "system_prompt"))
    ]
    if problems:
        objects = user if isinstance(user, list) else [user]
        is_elsewhere = any(isinstance(each, dict) for each in objects)
        raise (UnclearColumns if is_elsewhere else RecordError)("; ".join(problems))


def _wrong_prompt(name: str, value: object, *, may_be_empty: bool) -> str | None:
    if type(value) is not str:
        expected = "a string" if may_be_empty else "a non-empty string"
        return f"'{name}' is {json_type(value)}; expected {expected}"
    if not value and not may_be_empty:
        return f"'{name}' is an empty string; expected a non-empty one"
    return f"'{name}' holds only blanks; expected text" if value.isspace() else None


def _usable_id(value: object) -> str | None:
    if type(value) is int:
        return str(value)
    if type(value) is str and value and not value.isspace():
        return value
    return None
