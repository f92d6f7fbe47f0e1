"""What a file probably is: which column is what, by names and values together.

Knows neither files nor pytest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..column_names import (
    CALLS,
    CLASSES,
    CONTEXTS,
    FACTS,
    OPTIONS,
    OTHER_WORDS,
    QUESTION_WORDS,
    QUESTIONS,
    RARER_QUESTIONS,
    RARER_TRUTHS,
    RUBRICS,
    TESTS,
    TRUTH_WORDS,
    TRUTHS,
    plain,
)
from ..columns import LABEL, MESSAGES, METADATA, NONE, TRUTH, guessed_mapping
from ..truths import JUDGE, are_assertions, instruction_for, members, scorer_for
from .options import Options
from .places import (
    BLANK_LINE,
    NEW_LINE,
    Place,
    are_calls,
    are_functions,
    are_lists_of_text,
    are_texts,
    blank_then_render,
    first_of,
    is_chat,
    is_list_of,
    last_of,
    last_roles,
    places_of,
    render,
    render_then_blank,
    sample,
    variable,
)
from .shape import HELPFUL, Shape

SAMPLED = 2_000
"""Rows that are looked at."""
_QUESTION_NAMES = {name: at for at, name in enumerate(map(plain, (*QUESTIONS, *RARER_QUESTIONS)))}
_TRUTH_NAMES = {
    name: at for at, name in enumerate(map(plain, (TRUTH, LABEL, *TRUTHS, *RARER_TRUTHS)))
}
_CHATS = {
    name: at
    for at, name in enumerate((MESSAGES, "prompt", "conversations", "conversation", "input"))
}
_ANSWERS = frozenset(map(plain, ("completion", "chosen", "rejected", "response", "output")))
"""Lists of messages by these names are replies."""
_INSIDE = ("aliases", "text", "spans", "value", "content")
"""Where within an object its texts are, the best first."""
_BESIDE = frozenset(("extrainfo", "metadata", "meta", "info"))
"""Objects whose content is looked at last."""
_RECORDED = frozenset(("actualoutput", "retrievalcontext", "retrievedcontexts"))
"""Columns of recorded answers: a context beside them is for metrics, not for the agent."""
_WRAPPERS = frozenset(("inputs", "outputs", "input", "output", "vars", "item", "referenceoutputs"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TO_THE_LETTER = (
    'judge("Does the candidate answer follow every instruction in the input to the letter? '
    '1.0: each of them. 0.0: not each.")'
)
_BY_ITS_RUBRIC = (
    'judge("Does the candidate answer have what the reference asks of a good answer? '
    '1.0: all of it. 0.5: a part. 0.0: none of it.")'
)
_CALL = "Answer with a JSON list of the calls alone, each an object with name and arguments."
_ASSISTANTS = frozenset(("assistant", "gpt", "bot", "model"))
_TURNS = frozenset(("turns", "questions", "prompts"))
_HEADLINES = frozenset(
    ("title", "content", "description", "text", "message", "task", "user", "request", "inputs")
)
"""Names of questions that records of other things have too."""
_STRICT = _QUESTION_NAMES.keys() - _HEADLINES
_CALL_NAMES = frozenset(map(plain, CALLS))
_CLASS_NAMES = frozenset(map(plain, CLASSES))
_RUBRIC_NAMES = frozenset(map(plain, RUBRICS))
_FACT_NAMES = frozenset(FACTS)
_CONTEXT_NAMES = frozenset(map(plain, CONTEXTS))
_TRUTHS_ONLY = frozenset(map(plain, (TRUTH, LABEL, *TRUTHS, *RARER_TRUTHS))) - frozenset(
    map(plain, (*QUESTIONS, *RARER_QUESTIONS))
)


def shape_of(records: Sequence[Mapping[str, Any]]) -> Shape:
    """Return the shape of a file by its first rows."""
    return _Search(records[:SAMPLED]).found()


class _Search:
    """One look at the rows of a file."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        keys = dict.fromkeys(chain.from_iterable(records))
        self._columns = {key: [record.get(key) for record in records] for key in keys}
        self._places = [
            place
            for key, values in self._columns.items()
            for place in places_of(key, variable(key), plain(key), 0, values)
        ]
        self._functions = next(filter(are_functions, self._places), None)
        if self._functions is not None:  # what they say is not said to the agent
            top = self._functions.path
            below = (f"{top}.", f"{top}[")
            self._places = [
                each
                for each in self._places
                if each.path != top and not each.path.startswith(below)
            ]
        self._roles: dict[str, str] = {}
        self._remarks: list[str] = []
        self._either: tuple[str, ...] = ()
        self._instruction = ""
        self._calls: Place | None = None

    def found(self) -> Shape:
        """Look for everything, in an order in which each finding narrows the next."""
        if (otherwise := self._not_rows()) is not None:
            return Shape(
                tuple(self._table()), False, remarks=tuple(self._remarks), otherwise=otherwise
            )
        chat = self._chat()
        options = None if chat else self._options()
        prompt = chat or self._prompt(options)
        tests = self._tests()
        truth = self._truth(prompt, options, tests)
        scorer, why = self._scorer(truth, options, tests, prompt)
        self._say_what_is_left_out(chat)
        if options is not None and not str(scorer).startswith("choice"):
            options = options.unlabelled()
        template = None if chat or prompt is None else self._template(prompt, options, tests)
        system = self._system() if prompt is not None and not chat else None
        maps = self._maps(None if template else prompt, chat is not None, truth, system)
        return Shape(
            columns=tuple(self._table()),
            has_prompt=prompt is not None or options is not None,
            maps=maps,
            template=template,
            where=self._where(truth, scorer),
            scorer=scorer,
            why=why,
            either=self._either,
            remarks=tuple(self._remarks),
        )

    # ---- what the agent gets

    def _not_rows(self) -> str | None:
        """Return what to do with a file whose records are no rows; None where they are."""
        names = [*self._columns]
        are_cells = all(isinstance(each, str) for each in chain(*self._columns.values()))
        known = _QUESTION_NAMES.keys() | _TRUTH_NAMES.keys()
        is_header = not are_cells or any(plain(name) in known - {"a"} for name in names)
        if not is_header and any(name.rstrip().endswith("?") for name in names):
            return "its first line is a row: write the names of its columns above it"
        inner = _questions_within(self._records[0]) if self._records else None
        if inner is not None and not any(
            each.name in _STRICT and "[" not in each.path for each in self._places
        ):
            return f"its questions are in lists ({inner}): write one object for each question"
        return None

    def _chat(self) -> Place | None:
        """Return the list of chat messages that a row begins with."""
        chats = [each for each in self._places if is_chat(each.present)]
        found = [each for each in chats if each.name not in _ANSWERS]
        if not found:  # of pairs, each of which has the question too
            found = [each for each in chats if all(len(chat) > 1 for chat in each.present)]
        found.sort(key=lambda each: (each.depth, _CHATS.get(each.name, len(_CHATS))))
        if not found or self._is_record(found[0]):
            return None
        if found[0].path.endswith("[0]"):
            self._say_if_first(found[0].path.removesuffix("[0]"))
        self._roles[found[0].path] = MESSAGES
        return found[0]

    def _is_record(self, chat: Place) -> bool:
        """Return whether messages are what was answered once to a question that a column has."""
        texts = [each for each in self._places if each.depth == 0 and are_texts(each.present)]
        names = {each.name for each in texts}
        has_pair = not names.isdisjoint(map(plain, QUESTIONS))
        has_pair = has_pair and not names.isdisjoint({*map(plain, TRUTHS)} - {"output"})
        return has_pair and last_roles(chat) <= _ASSISTANTS

    def _say_if_first(self, path: str) -> None:
        """Say so where a list of turns has more than the one that is sent."""
        [values] = [each.values for each in self._places if each.path == path]
        if any(len(turns) > 1 for turns in values if turns):
            self._remarks.append(f"{path} has further turns: only the first is sent, and scored")

    def _say_what_is_left_out(self, chat: Place | None) -> None:
        """Say so where functions are defined that messages do not name."""
        if chat is not None and self._functions is not None:
            self._remarks.append(
                f"{self._functions.path} defines functions, which are not sent: give an agent that "
                "offers them"
            )

    def _prompt(self, options: Options | None) -> Place | None:
        taken = set() if options is None else {each.path for each in options.places}
        texts = [
            each
            for each in self._places
            if are_texts(each.present) and each.path not in taken and each.name not in _TRUTHS_ONLY
        ]
        named = [each for each in texts if each.name in _QUESTION_NAMES]
        named.sort(key=lambda each: (_depth(each), _QUESTION_NAMES[each.name]))
        if not named:
            named = self._first_turns() or _by_words(texts, QUESTION_WORDS) or self._alone(texts)
        if not named and options is None:
            named = [each for each in texts if each.name in _CONTEXT_NAMES]
        if not named:
            return None
        prompt = named[0]
        self._roles[prompt.path] = "user_prompt"
        return prompt

    def _first_turns(self) -> list[Place]:
        """Return the first of the user's turns, where a row has a list of them."""
        for each in self._places:
            is_named = each.name in _TURNS or each.name in _QUESTION_NAMES
            if is_named and are_lists_of_text(each.present):
                self._say_if_first(each.path)
                if any(len(turns) > 1 for turns in each.present):
                    self._references(each)
                firsts = [turns[0] for turns in each.present]
                self._places.append(each.at(0, firsts))
                return self._places[-1:]
        return []

    def _references(self, turns: Place) -> None:
        """Let lists of truths, one for each turn, be the first of each."""
        for at, each in enumerate(self._places):
            if each.name in _TRUTH_NAMES and are_lists_of_text([*filter(None, each.present)]):
                firsts = [value[0] if value else None for value in each.values]
                self._places[at] = each.at(0, firsts)

    def _alone(self, texts: Sequence[Place]) -> list[Place]:
        """Return the text that is probably the question, where no name says so."""
        free = [
            each
            for each in texts
            if (each.depth == 0 or plain(each.path.split(".")[0]) in _WRAPPERS)
            and each.name not in _TRUTH_NAMES
        ]
        free = [
            each
            for each in free
            if each.name not in {"id", METADATA, *_CONTEXT_NAMES, *_FACT_NAMES}
            and not each.name.startswith("sys")
        ]
        if not free or len(free) > 2:
            return [
                each for each in free if all(text.rstrip().endswith("?") for text in each.present)
            ]
        asked = [each for each in free if any("?" in text for text in each.present)]
        return (asked or free)[:1]

    def _system(self) -> str | None:
        """Return the column of system prompts; "none" where one is named so, and is none."""
        named = [key for key in self._columns if plain(key).startswith("sys")]
        for key in named:
            if key.strip().lower() == "system_prompt":
                return None
            if are_texts([value for value in self._columns[key] if value is not None]):
                self._roles[key] = "system_prompt"
                return key
        return NONE if named else None

    def _options(self) -> Options | None:
        """Return what an answer is chosen from."""
        names = {plain(name): at for at, name in enumerate(OPTIONS)}
        named = [each for each in self._places if each.name in names]
        for place in sorted(named, key=lambda each: (each.depth, names[each.name])):
            if (found := Options.within(place)) is not None:
                break
        else:
            found = Options.of_columns(self._places)
        if found is not None:
            self._roles |= dict.fromkeys((each.path for each in found.places), "options")
        return found

    def _template(self, prompt: Place, options: Options | None, tests: Place | None) -> str | None:
        """Return how the prompt is made of several columns, None where one is all."""
        if prompt.path.strip().lower() == "user_prompt":
            return None  # it was written for agents
        parts: list[str] = []
        about = self._contexts(prompt)
        if prompt.name == "instruction":
            parts = [f"{{{{ {prompt.expression} }}}}", *map(blank_then_render, about)]
        else:
            parts = [*map(render_then_blank, about), f"{{{{ {prompt.expression} }}}}"]
        if options is not None and options.template:
            parts.append(options.template)
        if tests is not None and are_lists_of_text(tests.present):
            loop = f"{{% for test in {tests.expression} %}}{NEW_LINE}{{{{ test }}}}{{% endfor %}}"
            parts.append(f"{BLANK_LINE}The code must pass these tests:{loop}")
        if self._functions is not None and self._calls is not None:
            parts.append(
                f"{BLANK_LINE}These functions can be called:{NEW_LINE}{render(self._functions)}"
            )
        if self._instruction:
            parts.append(f"{BLANK_LINE}{self._instruction}")
        return "".join(parts) if len(parts) > 1 else None

    def _contexts(self, prompt: Place) -> list[Place]:
        """Return what the question is about, in columns of their own."""
        if any(each.name in _RECORDED for each in self._places):
            return []
        wanted = {*_CONTEXT_NAMES}
        if prompt.name == "instruction":
            wanted.add("input")
        found = [
            each
            for each in self._places
            if each.name in wanted
            and each.depth == prompt.depth
            and each.path not in self._roles
            and any(each.present)
        ]
        self._roles |= dict.fromkeys((each.path for each in found), "context")
        return found

    # ---- what it is scored by

    def _tests(self) -> Place | None:
        names = set(map(plain, TESTS))
        for each in self._places:
            texts = [text for value in each.present for text in members(value)]
            are_texts = bool(texts) and all(isinstance(text, str) for text in texts)
            if each.name in names and are_texts and any("assert" in text for text in texts):
                self._roles[each.path] = "tests"
                return each
        return None

    def _truth(
        self, prompt: Place | None, options: Options | None, tests: Place | None
    ) -> Place | None:
        """Return the column of truths, or the place within one; none where there are tests."""
        if tests is not None:
            return None
        if (reply := self._last_reply(prompt)) is not None:
            return reply
        if options is not None and options.right is not None:
            self._roles[options.right.path] = TRUTH
            return options.right
        found = [
            each
            for each in self._places
            if each.name in _TRUTH_NAMES and each.path not in self._roles and each.present
        ]
        if options is not None:
            fitting = [each for each in found if options.base(each) is not None]
            found = fitting or found
        found.sort(key=lambda each: (_depth(each), _TRUTH_NAMES[each.name]))
        if self._functions is not None and (calls := self._called(found, prompt)) is not None:
            found = calls
        elif asserted := [each for each in found if are_assertions(each.present)]:
            found = [each for each in found if each not in asserted]
            self._places = [each for each in self._places if each not in asserted]
            self._remarks.append(
                f"{asserted[0].path} has assertions of promptfoo, which are not read: write the "
                "expected texts alone"
            )
        found = found or self._alike(prompt)
        if not found:
            return self._asserted() or self._rest(prompt)
        lacking = sum(value in (None, "") for value in found[0].values)
        if found[0].path.endswith("[0]") and lacking * 2 > len(self._records):
            self._remarks.append(f"most rows have no {found[0].path}: it is not compared with")
            return None
        truth = self._inner(found[0])
        self._ask(truth, found[1:])
        self._roles[truth.path] = TRUTH
        return truth

    def _called(self, found: Sequence[Place], prompt: Place | None) -> list[Place] | None:
        """Return the truth that is calls of functions; None where none is.

        Beside messages there is none: then the calls themselves are compared.
        """
        self._calls = next((each for each in found if are_calls(each.present)), None)
        if self._calls is None:
            return None
        is_text = prompt is not None and not is_chat(prompt.present)
        return [self._calls] if is_text else []

    def _free(self, prompt: Place | None) -> list[Place]:
        """Return the columns without a role, beside a prompt."""
        if prompt is None:
            return []
        free = [each for each in self._places if each.depth == 0 and each.path not in self._roles]
        return [each for each in free if not (each.name in _CALL_NAMES and are_calls(each.present))]

    def _alike(self, prompt: Place | None) -> list[Place]:
        """Return what has a part of the name of a truth; else what describes a good answer."""
        free = [] if self._calls is not None else self._free(prompt)
        found = _by_words(free, TRUTH_WORDS)
        return found or [
            each for each in free if each.name in _RUBRIC_NAMES and are_texts(each.present)
        ]

    def _ask(self, truth: Place, others: Sequence[Place]) -> None:
        """Leave it to the user, where a column `label` is beside another that may be the truth."""
        if truth.path.strip().lower() != LABEL:
            return
        answers = [each for each in others if each.name in ("answer", "target", "expected")]
        if answers and answers[0].values != truth.values:
            self._either = (f"{truth.path}={TRUTH}", f"{answers[0].path}={TRUTH}")
            self._roles[answers[0].path] = f"{TRUTH}?"

    def _inner(self, truth: Place) -> Place:
        """Return the place within objects that has their texts."""
        while truth.present and all(isinstance(value, dict) for value in truth.present):
            inner = [
                each
                for each in self._places
                if each.depth == truth.depth + 1 and each.path.startswith(f"{truth.path}.")
            ]
            named = [each for name in _INSIDE for each in inner if each.name == name]
            named += sorted(
                (each for each in inner if each.name in _TRUTH_NAMES and each.name != "a"),
                key=lambda each: _TRUTH_NAMES[each.name],
            )
            if not named and len(inner) == 1 and truth.name in _WRAPPERS:
                named = inner
            if not named:
                break
            truth = named[0]
        if is_chat(truth.present):
            return last_of(truth)
        return truth

    def _asserted(self) -> Place | None:
        """Return the value of the only assertion of a test, as promptfoo has them."""
        found = [each for each in self._places if each.path.endswith("assert[0].value")]
        if not found:
            return None
        self._roles[found[0].path] = TRUTH
        return found[0]

    def _last_reply(self, prompt: Place | None) -> Place | None:
        """Return the assistant's turn that ends the messages."""
        if prompt is None or not is_chat(prompt.present):
            return None
        if not last_roles(prompt) <= _ASSISTANTS:
            return None
        last = last_of(prompt)
        self._places.append(last)
        self._roles[last.path] = TRUTH
        return last

    def _rest(self, prompt: Place | None) -> Place | None:
        """Return the only other column, where a file has a question and that."""
        free = [each for each in self._free(prompt) if each.name not in {"id", *_FACT_NAMES}]
        if len(free) != 1 or prompt is None or prompt.name in _QUESTION_NAMES:
            return None
        self._roles[free[0].path] = TRUTH
        return free[0]

    def _scorer(
        self,
        truth: Place | None,
        options: Options | None,
        tests: Place | None,
        prompt: Place | None,
    ) -> tuple[str | None, str]:
        """Return the scorer that fits, and why."""
        if tests is not None:
            name = json.dumps(tests.path)
            return ("code" if tests.path == "test" else f"code(tests={name})"), "there are tests"
        if prompt is None and options is None:
            return None, ""
        if truth is None:
            return self._without_truth()
        texts = [text for value in truth.present for text in members(value)]
        if options is not None and (base := options.base(truth)) is not None:
            named = options.column not in ("", "choices")
            given = [f"options={json.dumps(options.column)}"] if named else []
            given += [f"base={base}"] if isinstance(base, int) else []
            self._say_if_guessed(truth, options, base or 0)
            return f"choice({', '.join(given)})" if given else "choice", "there are options"
        if options is not None and options.right is not None:
            return f'judge("{JUDGE}")', "of the marked options, which are not shown, one is right"
        if truth is self._calls:
            self._instruction = _CALL
            return "json_equal", "the truths are calls of the functions that a row defines"
        if truth.name in _RUBRIC_NAMES:
            return _BY_ITS_RUBRIC, f"{truth.path} says what a good answer is"
        prompts = [] if prompt is None else prompt.present
        are_classes = truth.name in _CLASS_NAMES
        self._instruction = instruction_for(texts, prompts, are_classes=are_classes)
        if options is not None and options.right is None:
            self._instruction = ""
        if truth.name == LABEL and all(isinstance(each, int) for each in truth.present):
            self._remarks.append(
                f"{truth.path} is a number: the prompt must say what each number stands for"
            )
        math = prompt is not None and prompt.name == "problem"
        return scorer_for(truth.present, is_math=math)

    def _without_truth(self) -> tuple[str, str]:
        """Return the scorer of rows without a truth, and why."""
        if any(each.name == "instructionidlist" for each in self._places):
            self._remarks.append(
                "instruction_id_list names checks that are programs of its publisher's: a judge "
                "stands for them"
            )
            return _TO_THE_LETTER, "there are instructions to follow"
        named = [each for each in self._places if each.depth == 0 and each.name in _CALL_NAMES]
        for each in [self._calls] if self._calls is not None else named:
            if are_calls(each.present):
                self._remarks.append(f"{each.path} are calls: they need an agent that has tools")
                return f"tools({json.dumps(each.path)})", "there are calls to make"
        return HELPFUL, "there is no truth to compare with"

    def _say_if_guessed(self, truth: Place, options: Options, base: int | str) -> None:
        """Say so where no row shows whether options are counted from 0 or from 1."""
        pairs = zip(truth.values, options.counts, options.names, strict=True)
        indices = [
            (int(value), count)
            for value, count, names in pairs
            if str(value).strip().isdecimal() and str(value).strip() not in names
        ]
        if indices and min(indices)[0] and all(index < count for index, count in indices):
            self._remarks.append(
                f"no row shows whether {truth.path} counts from 0 or 1: {base} is taken; else "
                f"give choice base={0 if base == 1 else 1}"
            )

    def _where(self, truth: Place | None, scorer: str | None) -> tuple[str, ...]:
        """Return what leaves out rows without a truth, where that is compared with."""
        if truth is None or scorer is None or scorer.startswith("code"):
            return ()
        lacking = [value for value in truth.values if value in (None, [], "")]
        if not lacking:
            return ()
        self._remarks.append(
            f"{len(lacking)} of {len(truth.values)} rows have no {truth.path}: they are left out"
        )
        return (f"{truth.path}!=",)

    # ---- how it is said

    def _maps(
        self, prompt: Place | None, is_chat: bool, truth: Place | None, system: str | None
    ) -> tuple[str, ...]:
        """Return the maps that are needed."""
        roles = {
            (MESSAGES if is_chat else "user_prompt"): prompt,
            TRUTH: None if self._either else truth,
        }
        wanted = {role: place.path for role, place in roles.items() if place is not None}
        if system is not None:
            wanted["system_prompt"] = system
        if self._records and wanted == guessed_mapping(self._records[0]):
            return ()
        natural = {
            role: path
            for role, path in wanted.items()
            if path.strip().lower() in (role, LABEL if role == TRUTH else role)
        }
        if TRUTH in natural and self._has(TRUTH) and natural[TRUTH].strip().lower() == LABEL:
            del natural[TRUTH]
        return tuple(f"{path}={role}" for role, path in wanted.items() if role not in natural)

    def _has(self, name: str) -> bool:
        return any(key.strip().lower() == name for key in self._columns)

    def _table(self) -> Iterator[tuple[str, str, str]]:
        """Yield each column, and below it the places within that play a role."""
        for key, values in self._columns.items():
            yield key, self._roles.get(key, ""), sample(first_of(values))
            for path, role in self._roles.items():
                if path != key and path.startswith((f"{key}.", f"{key}[")):
                    values_there = [each.values for each in self._places if each.path == path]
                    yield path, role, sample(first_of(values_there[0])) if values_there else ""


def _depth(place: Place) -> int:
    return place.depth + any(plain(part) in _BESIDE for part in place.path.split(".")[:1])


def _by_words(places: Iterable[Place], wanted: frozenset[str]) -> list[Place]:
    """Return the columns whose names have one of some words."""
    found = []
    for place in places:
        words = {word.lower() for word in _WORD.findall(place.path)}
        if place.depth == 0 and place.present and words & wanted and not words & OTHER_WORDS:
            found.append(place)
    return found


def _questions_within(record: Mapping[str, Any], depth: int = 3) -> str | None:
    """Return the name of a list of objects that have questions; of the outermost one."""
    for name, value in record.items():
        for inner in value if is_list_of(value, dict) and depth else ():
            if not _STRICT.isdisjoint(map(plain, inner)) or _questions_within(inner, depth - 1):
                return name
    return None
