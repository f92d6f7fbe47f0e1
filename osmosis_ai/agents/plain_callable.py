"""Plain callables as agents: functions, methods, partials, objects with `__call__`, their classes.

`input_kind` reads from a signature what a callable is given; `CallableAgent` calls it once a
rollout and makes a conversation of what it returns. A synchronous one is called in a thread, and
a class is made anew for each rollout.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..messages import last_assistant_text, text_of
from .base import RolloutAgentLoop
from .results import RolloutResult

if TYPE_CHECKING:
    from .context import RolloutContext
    from .request import Message, RolloutRequest

InputKind = Literal["context", "messages", "row", "text"]
Takes = Literal["question", "text", "row"]
"""What of a row an agent is given: messages, the text of one question, or all columns."""
_TAKEN = (
    "an agent takes one required parameter: the question as text, `messages` (a list), "
    "`row` (a dict), or `ctx` (with `async def`)"
)
OURS = ("model", "base_url", "api_key")
"""Names of the parameters that are given the evaluated model."""
_LIST_NAMES = {"list", "List", "Sequence", "MutableSequence"}
_MAPPING_NAMES = {"dict", "Dict", "Mapping", "MutableMapping"}
_ONLY_IN_EVALUATIONS = ("row_index", "run_index", "execution_mode")


def is_async_callable(function: Any) -> bool:
    """Return whether a call of it, or of a class's instances, only makes a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isclass(function):
        called = function.__call__
    else:
        called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called)


def name_of(function: Any) -> str:
    """Return the name of a callable for messages: a function's own, else that of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def input_kind(function: Any) -> InputKind:
    """Return what a callable is given.

    Raises:
        TypeError: when it can be called with nothing that a rollout has.
    """
    return _plan(function).kind


def can_be_agent(function: Any) -> bool:
    """Return whether a callable can be called with something that a rollout has."""
    try:
        input_kind(function)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a callable is called."""

    name: str
    """The parameter that is given what the rollout is about."""
    kind: InputKind
    by_name: bool
    """Whether it has to be given by its name."""
    ours: tuple[str, ...]
    """Its parameters for the evaluated model."""
    has_defaults: bool
    """Whether it can be called without these."""


def _plan(function: Any) -> _Plan:
    parameters = _parameters(function)
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in parameters if parameter.kind not in optional]
    ours = [parameter for parameter in named if parameter.name in OURS]
    first = next(iter(parameters), None)
    required = [
        parameter
        for parameter in named
        if parameter.default is parameter.empty and parameter not in ours
    ]
    if first is not None and _is_context(first) and required in ([], [first]):
        if not is_async_callable(function):
            raise TypeError(f"{name_of(function)} takes a context: declare it `async def`")
        if lacking := [
            parameter.name for parameter in ours if parameter.default is parameter.empty
        ]:
            raise TypeError(
                f"{name_of(function)} takes a context, which has the model (`ctx.chat`): "
                f"leave out {', '.join(lacking)}"
            )
        return _Plan(first.name, "context", False, (), True)
    if len(required) != 1:
        taken = ", ".join(parameter.name for parameter in parameters)
        made = "" if required else f"; one that makes an agent is named {name_of(function)}()"
        raise TypeError(f"{name_of(function)} takes ({taken}); {_TAKEN}{made}")
    check_ours(function, [parameter.name for parameter in ours])
    [parameter] = required
    return _Plan(
        parameter.name,
        _kind_of(parameter),
        by_name=parameter.kind is parameter.KEYWORD_ONLY or parameter is not first,
        ours=tuple(parameter.name for parameter in ours),
        has_defaults=all(parameter.default is not parameter.empty for parameter in ours),
    )


def _kind_of(parameter: inspect.Parameter) -> InputKind:
    annotation = _annotation_name(parameter.annotation)
    if parameter.name == "messages" or annotation in _LIST_NAMES:
        return "messages"
    if parameter.name == "row" or annotation in _MAPPING_NAMES:
        return "row"
    return "text"


def check_ours(function: Any, names: Sequence[str]) -> None:
    """Raise TypeError where a key of ours would go elsewhere, or one of theirs to us."""
    for one, other in (("base_url", "api_key"), ("api_key", "base_url")):
        if one in names and other not in names:
            raise TypeError(
                f"{name_of(function)} takes {one} without {other}: an evaluation gives both, the "
                "address of its model and the key for that address; take both, or neither"
            )


def given_model(ctx: RolloutContext, names: Collection[str]) -> dict[str, str]:
    """Return the values of parameters for the evaluated model; none where there is none."""
    if not names or not ctx.model_name:
        return {}
    model = {"model": ctx.model_name} if "model" in names else {}
    if "base_url" in names:
        model |= {"base_url": ctx.chat_completions_url, "api_key": ctx.api_key}
    return model


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    """Return the parameters of a callable; of a class, those of a call of its instances."""
    called, is_bound = function, True
    if inspect.isclass(function):
        called = inspect.getattr_static(function, "__call__")
        is_bound = isinstance(called, staticmethod)
        called = getattr(called, "__func__", called)
    try:
        signature = inspect.signature(called)
        with contextlib.suppress(Exception):  # a name that only type checkers import
            signature = inspect.signature(called, eval_str=True)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name_of(function)} has no signature that can be read: wrap it in a function"
        ) from None
    return [*signature.parameters.values()][0 if is_bound else 1 :]


def _is_context(parameter: inspect.Parameter) -> bool:
    return parameter.name == "ctx" or _annotation_name(parameter.annotation) == "RolloutContext"


def _annotation_name(annotation: Any) -> str:
    """Return the name of a type without its parameters; that of a TypedDict is `dict`."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip()
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, dict | list):
        return "dict" if issubclass(origin, dict) else "list"
    return str(getattr(origin, "__name__", origin))


class CallableAgent(RolloutAgentLoop):
    """The agent loop that calls a plain callable for each rollout.

    It asks a model of its own, unless it has parameters for the evaluated one.
    """

    name = "agent"

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raise TypeError for a callable of other arguments than one that a rollout has."""
        self.function = function
        self.name = name_of(function)
        self._plan = _plan(function)
        self._is_async = is_async_callable(function)
        self._made_with: tuple[str, ...] = ()
        """The parameters for the evaluated model of a class's constructor."""
        if inspect.isclass(function):
            names = inspect.signature(function).parameters
            self._made_with = tuple(name for name in OURS if name in names)
            check_ours(function, self._made_with)
        self.ours = frozenset({*self._plan.ours, *self._made_with})
        """Its parameters for the evaluated model."""
        self.asks_model = "base_url" in self.ours
        self.needs_model = bool(self.ours) and not self._can_do_without()
        """Whether it cannot be called without an evaluated model."""
        self.sees_system_prompt = self._plan.kind != "text"
        kind = self._plan.kind
        self.takes: Takes = kind if kind in ("text", "row") else "question"

    def _can_do_without(self) -> bool:
        made = inspect.signature(self.function).parameters if self._made_with else {}
        return self._plan.has_defaults and all(
            made[name].default is not inspect.Parameter.empty for name in self._made_with
        )

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """Return no tools: the callable has its own."""
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Call it, in a thread where it is synchronous, and return the conversation."""
        opening = ctx.request.messages
        call = functools.partial(self._call, self._input(ctx.request), given_model(ctx, self.ours))
        if self._is_async:
            returned = call()
        else:
            from ..running.thread_calls import run_in_thread  # brings asyncio

            returned = await (ctx.run_sync or run_in_thread)(call)
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, RolloutResult):
            return returned
        messages = self._messages(returned, opening, ctx)
        for _ in range(sum(message.get("role") == "tool" for message in messages)):
            ctx.record_tool_call()
        return RolloutResult("COMPLETED", messages)  # its metrics are pydantic's

    def _call(self, given: Any, model: dict[str, str]) -> Any:
        function: Any = self.function
        if inspect.isclass(function):
            made = {name: model[name] for name in self._made_with if name in model}
            function = function(**made)
        named = {name: model[name] for name in self._plan.ours if name in model}
        if self._plan.by_name:
            return function(**{self._plan.name: given}, **named)
        return function(given, **named)

    def _input(self, request: RolloutRequest) -> Any:
        if self._plan.kind == "messages":
            return copy.deepcopy(request.messages)
        user = _texts(request.messages, "user")[-1]
        if self._plan.kind == "text":
            return user
        row = copy.deepcopy(request.metadata)
        for name in _ONLY_IN_EVALUATIONS:
            row.pop(name, None)
        system = _texts(request.messages, "system")[0]
        if not _is_one_question(request.messages):
            row.setdefault("messages", copy.deepcopy(request.messages))
        return {**row, "system_prompt": system, "user_prompt": user}

    def _messages(
        self, returned: Any, opening: list[Message], ctx: RolloutContext
    ) -> list[Message]:
        """Return the whole conversation; a list that begins with the row's messages is that.

        What the callable's recorded clients said stands before what it returned; an answer that
        is the last of them stands once.
        """
        from .returned import json_text, messages_of

        messages = messages_of(returned)
        recorded = ctx.conversation()
        if messages is None:
            text = returned if isinstance(returned, str) else json_text(returned, self.name)
            messages = [{"role": "assistant", "content": text}]
        elif conversation := _beginning_with(opening, messages):
            return conversation
        if not recorded or len(messages) > 1 or isinstance(returned, list | tuple):
            return [*opening, *messages]
        answer = text_of(messages[-1].get("content")).strip()
        return (
            recorded if last_assistant_text(recorded).strip() == answer else [*recorded, *messages]
        )


def _beginning_with(opening: list[Message], messages: list[Message]) -> list[Message] | None:
    """Return a conversation that begins with the row's messages, or with those but the system's."""
    system = opening[:1] if opening and opening[0].get("role") == "system" else []
    for left_out in ([], system):
        rest = opening[len(left_out) :]
        if rest and messages[: len(rest)] == rest:
            return [*left_out, *messages]
    return None


def _is_one_question(messages: Iterable[Message]) -> bool:
    """Return whether the messages are no more than a system prompt and a question, as text."""
    asked = [each for each in messages if each.get("role") != "system"]
    return [each.get("role") for each in asked] == ["user"] and isinstance(asked[0]["content"], str)


def _texts(messages: Iterable[Message], role: str) -> list[str]:
    """Return the texts of one role; an empty one where there is none."""
    return [
        text_of(message.get("content")) for message in messages if message.get("role") == role
    ] or [""]
