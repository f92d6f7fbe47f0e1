"""Eval functions in the shapes of other libraries: what each parameter is given, by its name.

`eval_function` knows our own two signatures; here are verifiers', TRL's, LangSmith's, promptfoo's
and Braintrust's, and pairs of an answer and a ground truth. All names of a signature decide, never
their order: a wrong guess would score in silence. What is not certain is refused, with a wrapper.
Loaded for such functions alone; knows no rows and calls nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from osmosis_ai.messages import last_assistant_text, text_of

from .import_object import ImportingError

Messages = list[dict[str, Any]]
_EMPTY = inspect.Parameter.empty

_TRUTH_WORDS = {"truth", "expected", "target", "gold", "reference", "label", "correct"}
_ANSWER_WORDS = {"completion", "response", "output", "prediction", "generated"}
"""Beside one of these, a parameter `answer` is the ground truth."""
_CERTAIN = {"output", "response", "prediction", "actual"}
"""What an answer is called where nothing beside it is the ground truth."""
_NO_ANSWER = {
    "calls", "completions", "config", "context", "conversation", "data", "doc", "docs",
    "documents", "events", "example", "history", "info", "inputs", "invocations", "item", "kwargs",
    "messages", "outputs", "parser", "predictions", "prompts", "references", "responses", "run",
    "sample", "spans", "state", "targets", "task", "threshold", "tool", "tools", "trace", "traces",
    "trajectory", "turns", "weight",
}  # fmt: skip
"""Words of what is not the text of one answer."""


@dataclass(frozen=True, slots=True)
class Given:
    """One finished run; all of it is a copy that the function may change."""

    messages: Messages
    answer: str
    truth: Any
    row: dict[str, Any]

    @property
    def is_chat(self) -> bool:
        """Whether the row is a conversation rather than texts."""
        return "messages" in self.row

    def split(self) -> tuple[Messages, Messages]:
        """Return the messages that the rollout began with, and those that it added."""
        at = _end_of_opening(self.messages, _opening(self.row))
        return self.messages[:at], self.messages[at:]

    def column(self, name: str) -> Any:
        """Return the row's column; as a table has it, None where this row has none."""
        return self.row.get(name)


def _opening(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if "messages" in row:
        return row["messages"] or ()
    prompts = (("system", row.get("system_prompt")), ("user", row.get("user_prompt")))
    return [{"role": role, "content": text} for role, text in prompts if text]


def _end_of_opening(messages: Messages, opening: Sequence[Mapping[str, Any]]) -> int:
    """Return where the rollout's own messages begin; the agent may have changed the opening."""
    said, expected = list(map(_said, messages)), list(map(_said, opening))
    if expected and said[: len(expected)] == expected:
        return len(expected)
    if expected and expected[-1] in said:
        return said.index(expected[-1]) + 1
    replies = (at for at, message in enumerate(messages) if message.get("role") == "assistant")
    return next(replies, len(messages))


def _said(message: Mapping[str, Any]) -> tuple[Any, str]:
    return message.get("role"), text_of(message.get("content"))


@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of a parameter comes from."""

    shown: str
    """As the header says it."""
    value: Callable[[Given], Any]
    needs_conversation: bool = False


def _prompt(given: Given) -> Any:
    return given.split()[0] if given.is_chat else given.row.get("user_prompt", "")


def _completion(given: Given) -> Any:
    return given.split()[1] if given.is_chat else given.answer


ANSWER = Source("the answer", lambda given: given.answer)
TRUTH = Source("ground_truth", lambda given: given.truth)
ROW = Source("the row", lambda given: given.row)
PROMPT = Source("the prompt", _prompt, needs_conversation=True)
PROMPT_TEXT = Source("the prompt's text", lambda given: given.row.get("user_prompt", ""))
PROMPT_MESSAGES = Source("the prompt's messages", lambda given: given.split()[0], True)
ADDED = Source("the messages that follow", lambda given: given.split()[1], True)


def _named(name: str, otherwise: Source) -> Source:
    """Return the column of this name, where the row has one."""
    return Source(
        otherwise.shown,
        lambda given: given.row[name] if name in given.row else otherwise.value(given),
        otherwise.needs_conversation,
    )


def _column(name: str) -> Source:
    return Source(f"[{name}]", lambda given: [given.column(name)])


_BESIDE = {
    **{name: _named(name, PROMPT) for name in ("input", "question", "prompt", "query")},
    **dict.fromkeys(("metadata", "extra_info", "row"), ROW),
}
"""What else a function of an answer may name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function is given, by its parameters' names."""

    sources: Mapping[str, Source]
    is_list: bool = False
    """It is given lists of one, and returns one."""
    columns: tuple[str, ...] = ()
    """The columns that it cannot do without."""
    rest: Callable[[Given], dict[str, Any]] | None = None
    """What `**kwargs` gets."""
    bound: frozenset[str] = frozenset()
    """What it has already."""

    def without(self, bound: frozenset[str]) -> Shape:
        """Return the same for a function that has some of it already."""
        sources = {name: each for name, each in self.sources.items() if name not in bound}
        columns = tuple(name for name in self.columns if name not in bound)
        return replace(self, sources=sources, columns=columns, bound=bound)

    def fill(self, given: Given) -> dict[str, Any]:
        """Return the value of each parameter."""
        values = {} if self.rest is None else self.rest(given)
        values |= {name: source.value(given) for name, source in self.sources.items()}
        return {name: value for name, value in values.items() if name not in self.bound}

    def roles(self) -> str:
        """Return what each parameter is given, as the header says it."""
        return ", ".join(f"{name} <- {source.shown}" for name, source in self.sources.items())

    @property
    def needs_conversation(self) -> bool:
        """Whether the answer, the ground truth and the row are not enough."""
        return self.is_list or any(source.needs_conversation for source in self.sources.values())


@dataclass(frozen=True, slots=True)
class Signature:
    """A function of the user's, as its parameters describe it."""

    function: Any
    parameters: Mapping[str, inspect.Parameter]
    spec: str
    """`module:name`, as the user gave it."""
    bound: frozenset[str] = frozenset()
    """The parameters that a partial has bound: they tell what the others are."""
    is_class: bool = False
    """Whether that names a class, and the function is an instance."""

    @property
    def names(self) -> list[str]:
        """The parameters that have a name to be given by."""
        variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return [name for name, each in self.parameters.items() if each.kind not in variadic]

    @property
    def required(self) -> list[str]:
        """Those without a default, and those that are bound."""
        return [
            name
            for name in self.names
            if name in self.bound or self.parameters[name].default is _EMPTY
        ]

    @property
    def is_open(self) -> bool:
        """Whether it takes further keywords."""
        return any(each.kind is each.VAR_KEYWORD for each in self.parameters.values())

    def annotated(self, name: str) -> str | None:
        """Return whether a parameter is `text`, a `list` or `other`; None where nothing says so."""
        annotation = self.parameters[name].annotation
        if annotation is _EMPTY:
            return None
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        kinds = [_KINDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _KINDS]
        if name == "completion" and "list" in kinds:  # also where it may be text
            return "list"
        return kinds[0] if kinds else None


_KINDS = {
    "str": "text",
    **dict.fromkeys(("list", "sequence", "messages"), "list"),
    **dict.fromkeys(("dict", "mapping", "tuple", "set", "int", "float", "bool"), "other"),
}
"""What the words of an annotation say; the first counts."""


def find_shape(signature: Signature, named: str) -> Shape:
    """Return what a function is given.

    Raises:
        ImportingError: when its names leave a doubt; says so, with a wrapper that works.
    """
    names = set(signature.names)
    for find in (_trl, _langsmith, _promptfoo, _verifiers):
        if (shape := find(signature, names)) is not None:
            return shape.without(signature.bound)
    found = _pair(signature)
    if isinstance(found, Shape):
        return found.without(signature.bound)
    raise ImportingError(f"{named}: takes ({listed(signature.parameters)}), {found}")


def _trl(signature: Signature, names: set[str]) -> Shape | None:
    if "completions" not in names:
        return None
    of_messages = r"(?:list|sequence)\[(?:\w+\.)*(?:list|sequence|messages)\b"
    annotation = str(signature.parameters["completions"].annotation).lower()
    is_of_messages = re.search(of_messages, annotation) is not None
    completion = ADDED.value if is_of_messages else _completion
    prompt = PROMPT_MESSAGES.value if is_of_messages else _prompt
    lists = {
        "completions": Source("[the completion]", lambda given: [completion(given)]),
        "prompts": Source("[the prompt]", lambda given: [prompt(given)]),
    }
    columns = [name for name in signature.required if name not in lists]
    sources = {name: lists.get(name) or _column(name) for name in signature.required}
    optional = {name for name in names if name not in sources}
    sources |= {name: lists[name] for name in signature.names if name in lists}

    def rest(given: Given) -> dict[str, Any]:
        taken = dict(given.row) if signature.is_open else {}
        taken |= {name: given.row[name] for name in optional if name in given.row}
        left_out = {"prompt", "completion", *columns}
        found = {name: [value] for name, value in taken.items() if name not in left_out}
        return found | ({"prompts": lists["prompts"].value(given)} if signature.is_open else {})

    return Shape(sources, is_list=True, columns=tuple(columns), rest=rest)


def _langsmith(signature: Signature, names: set[str]) -> Shape | None:
    sources = {
        "inputs": Source("the row", _inputs),
        "outputs": Source("{output: the answer}", lambda given: _outputs(given, given.answer)),
        "reference_outputs": Source(
            "{output: ground_truth}", lambda given: _outputs(given, given.truth)
        ),
    }
    if not ("outputs" in names and len(names & set(sources)) > 1):
        return None
    return _fitting(signature, sources)


def _inputs(given: Given) -> dict[str, Any]:
    return {name: value for name, value in given.row.items() if name != "ground_truth"}


def _outputs(given: Given, value: Any) -> dict[str, Any]:
    """Return an answer, or the ground truth, under the same keys; one that is a mapping as it is.

    These are `output`, `answer` and what the column of the ground truth is called.
    """
    if isinstance(value, dict):
        return value
    own = [name for name, each in given.row.items() if given.truth is not None]
    own = [name for name in own if str(given.row[name]) == str(given.truth)]
    return dict.fromkeys(("output", "answer", *own), value)


def _promptfoo(signature: Signature, names: set[str]) -> Shape | None:
    if not {"output", "context"} <= names:
        return None

    def context(given: Given) -> dict[str, Any]:
        prompt = given.row.get("user_prompt", "")
        return {"vars": given.row, "prompt": prompt, "test": {"vars": given.row}}

    return _fitting(signature, {"output": ANSWER, "context": Source("{vars: the row}", context)})


def _verifiers(signature: Signature, names: set[str]) -> Shape | None:
    beside = {"prompt", "state", "info", "parser", "task"}
    if "completion" not in names or not (names & beside or signature.is_open):
        return None
    is_text = "text" in map(signature.annotated, names & {"completion", "prompt"})
    sources = {
        "completion": ANSWER if is_text else ADDED,
        "answer": TRUTH,
        "prompt": PROMPT_TEXT if is_text else PROMPT_MESSAGES,
        "info": _named("info", ROW),
        "task": _named("task", Source("'default'", lambda given: "default")),
    }

    def state(given: Given) -> dict[str, Any]:
        replies = [each for each in given.split()[1] if each.get("role") == "assistant"]
        values = {name: source.value(given) for name, source in sources.items() if name != "state"}
        return {**values, "turn": len(replies)}

    parser = _parser_of(signature.function)
    everything = {
        **sources,
        "state": Source("the state", state, needs_conversation=True),
        "parser": Source("a parser", lambda given: parser),
    }
    return _fitting(signature, everything)


def _parser_of(function: Any) -> Any:
    """Return the parser that the function's module has under this name, else one of plain text."""
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    own = getattr(inner, "__globals__", {}).get("parser")
    if hasattr(own, "parse_answer"):
        return own
    return SimpleNamespace(
        parse=lambda text: text,
        parse_answer=lambda said: said if isinstance(said, str) else last_assistant_text(said),
        get_assistant_messages=lambda said: [
            each for each in said if each.get("role") == "assistant"
        ],
    )


def _fitting(signature: Signature, sources: Mapping[str, Source]) -> Shape | None:
    """Return the shape with these sources, unless the function needs something else."""
    if not set(signature.required) <= set(sources):
        return None
    named = {name: sources[name] for name in signature.names if name in sources}
    if not signature.is_open:
        return Shape(named)
    others = {name: source for name, source in sources.items() if name not in named}
    return Shape(named, rest=Shape(others).fill)


# ---- an answer and a ground truth


def _pair(signature: Signature) -> Shape | str:
    """Return the shape of a function of an answer, or what keeps it from being one."""
    needed = [name for name in signature.required if name not in _BESIDE]
    optional = [name for name in signature.names if name not in signature.required]
    if len(needed) == 1:
        needed += [name for name in optional if _words(name) & _TRUTH_WORDS][:2]
    if len(needed) == 1 and needed[0] in _CERTAIN | {"completion"}:
        answer, truth = needed[0], None
    elif len(needed) == 2 and (found := _truth_of(needed)) is not None:
        truth = found
        [answer] = set(needed) - {found}
    else:
        return _doubt(signature)
    annotated = signature.annotated(answer)
    is_plain = answer == "completion" and annotated not in ("text", "list")
    if is_plain and truth in ("answer", None):
        return (
            "and it is not said whether `completion` is text or a list of messages: annotate it "
            f"(completion: str, or completion: list), or wrap it, for text:"
            f"{_wrapper(signature, needed)}\nfor messages:"
            f"{_wrapper(signature, needed, added=True)}"
        )
    as_messages = answer == "completion" and annotated == "list"
    if annotated not in (None, "text") and not as_messages and not is_plain:
        return f"and {answer!r} is not annotated as text{WRAP}{_wrapper(signature, needed)}"
    known = {**_BESIDE, answer: ADDED if as_messages else ANSWER}
    known |= {} if truth is None else {truth: TRUTH}
    sources = {name: known[name] for name in signature.names if name in known}
    rest = None
    if signature.is_open and answer == "output":
        beside = {name: _BESIDE[name] for name in ("input", "metadata") if name not in sources}
        rest = Shape({**beside, **({} if truth else {"expected": TRUTH})}).fill
    return Shape(sources, rest=rest)


def _truth_of(pair: Sequence[str]) -> str | None:
    """Return which of two names is the ground truth; None where not exactly one says so."""
    truths = [name for name in pair if _words(name) & _TRUTH_WORDS]
    if not truths and "answer" in pair:
        truths = ["answer"] if any(_words(name) & _ANSWER_WORDS for name in pair) else []
    if len(truths) != 1:
        return None
    others = set(pair) - set(truths)
    return None if any(_words(name) & _NO_ANSWER for name in others) else truths[0]


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def _doubt(signature: Signature) -> str:
    names = signature.required
    if not signature.parameters:
        return "and cannot see the answer; expected solution_str, or messages"
    unknown = [name for name in names if name not in _EXPRESSIONS]
    if {"solution_str", "messages"} & {*names} and unknown:
        doubt = f"nothing is passed for {unknown[0]!r}"
    elif len(names) == 1:
        doubt = f"{names[0]!r} does not say what it is"
    else:
        doubt = "the names do not say which is the answer and which the ground truth"
    return f"and {doubt}{WRAP}{_wrapper(signature, names)}"


WRAP = "; wrap it, and see that each argument is what it is meant to be:"
_EXPRESSIONS = {
    **{name: name for name in ("solution_str", "messages", "ground_truth")},
    **dict.fromkeys(("extra_info", "metadata", "row", "inputs", "info", "state"), "{row}"),
    **dict.fromkeys(("prompt", "prompt_str", "question", "input", "query"), '{row}["user_prompt"]'),
    "data_source": '{row}.get("data_source")',
    "completions": "[solution_str]",
    "outputs": '{{"output": solution_str}}',
    "prompts": '[{row}["user_prompt"]]',
    "context": '{{"vars": {row}}}',
}
"""What a wrapper passes for a parameter, by its name."""
_HOLD_ANSWER = ("solution_str", "messages", "completions", "outputs")


def _wrapper(signature: Signature, needed: Sequence[str], *, added: bool = False) -> str:
    """Return the lines of a function around another that is given what it needs.

    `added`: its answer is a list of messages.
    """
    is_full = added or "messages" in needed
    row = "metadata" if is_full else "extra_info"
    needed = [name for name in needed if name not in signature.bound]
    arguments = [] if needed else _variadic(signature)
    for name, value in _values(needed, row, "messages[-1:]" if added else "solution_str").items():
        by_place = signature.parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY
        arguments.append(value if by_place else f"{name}={value}")
    source, _, attribute = signature.spec.partition(":")
    module = Path(source).stem if source.endswith(".py") else source
    called = attribute + ("()" if signature.is_class else "")
    imported = attribute.partition(".")[0]
    name = "scored" if imported != "scored" else "graded"
    return (
        f"\n    from {module} import {imported}\n"
        f"    def {name}({'messages' if is_full else 'solution_str'}, ground_truth, {row}):\n"
        f"        return {called}({', '.join(arguments)})"
    )


def _variadic(signature: Signature) -> list[str]:
    """Return what to pass to a function that names nothing it needs."""
    kinds = {each.kind for each in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return ["solution_str", "ground_truth"]
    return ["solution_str=solution_str", "ground_truth=ground_truth"] if signature.is_open else []


def _values(needed: Sequence[str], row: str, answer: str) -> dict[str, str]:
    """Return what to pass for each parameter: one is the answer, one the truth, others columns."""
    free = [name for name in needed if name not in _EXPRESSIONS]
    truth = _truth_of(free) or next((each for each in free if _words(each) & _TRUTH_WORDS), None)
    others = [name for name in free if name != truth]
    found = {name: f'{row}["{name}"]' for name in others}
    if others and not {*needed} & {*_HOLD_ANSWER}:
        found[others[0]] = answer
        if truth is None and len(others) > 1:
            truth = others[1]
    found |= {} if truth is None else {truth: "ground_truth"}
    return {name: found.get(name) or _EXPRESSIONS[name].format(row=row) for name in needed}


def listed(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the parameters of a signature, without annotations."""
    bare = [parameter.replace(annotation=parameter.empty) for parameter in parameters.values()]
    return ", ".join(map(str, bare))
