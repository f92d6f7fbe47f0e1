"""Plain callables as agents: functions, methods, partials, objects with `__call__`.

`input_kind` reads from a signature what a callable is given; `CallableAgent` calls it once a
rollout and makes a conversation of what it returns. A synchronous one is called in a thread.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..messages import last_assistant_text, text_of
from .base import RolloutAgentLoop
from .errors import OsmosisValidationError
from .results import RolloutResult

if TYPE_CHECKING:
    from .context import RolloutContext
    from .request import Message, RolloutRequest

InputKind = Literal["context", "messages", "row", "text"]
_TAKEN = (
    "an agent takes one required parameter: the question as text, `messages` (a list), "
    "`row` (a dict), or `ctx` (with `async def`)"
)
_RETURNED = (
    "expected text, a message (a dict with 'role'), a list of messages, a RolloutResult, "
    "or another value that JSON has"
)
_LIST_NAMES = {"list", "List", "Sequence", "MutableSequence"}
_MAPPING_NAMES = {"dict", "Dict", "Mapping", "MutableMapping"}
_ONLY_IN_EVALUATIONS = ("row_index", "run_index", "execution_mode")


def is_async_callable(function: Any) -> bool:
    """Return whether a call of it only makes a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
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
    return _plan(function)[1]


def can_be_agent(function: Any) -> bool:
    """Return whether a callable can be called with something that a rollout has."""
    try:
        input_kind(function)
    except TypeError:
        return False
    return True


def _plan(function: Any) -> tuple[inspect.Parameter, InputKind]:
    """Return the parameter that is given a value, and with what."""
    parameters = _parameters(function)
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    first = next(iter(parameters), None)
    required = [each for each in parameters if each.default is each.empty]
    required = [each for each in required if each.kind not in optional]
    if first is not None and _is_context(first) and required in ([], [first]):
        if not is_async_callable(function):
            raise TypeError(f"{name_of(function)} takes a context: declare it `async def`")
        return first, "context"
    if len(required) != 1:
        taken = ", ".join(each.name for each in parameters)
        raise TypeError(f"{name_of(function)} takes ({taken}); {_TAKEN}")
    [parameter] = required
    annotation = _annotation_name(parameter.annotation)
    if parameter.name == "messages" or annotation in _LIST_NAMES:
        return parameter, "messages"
    if parameter.name == "row" or annotation in _MAPPING_NAMES:
        return parameter, "row"
    return parameter, "text"


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    try:
        with contextlib.suppress(Exception):  # a name that only type checkers import
            return [*inspect.signature(function, eval_str=True).parameters.values()]
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        raise TypeError(
            f"{name_of(function)} has no signature that can be read: wrap it in a function"
        ) from None


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
    """The agent loop that calls a plain callable for each rollout; it asks no model of ours."""

    name = "agent"
    asks_model = False

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raise TypeError for a callable of other arguments than one that a rollout has."""
        self.function = function
        self.name = name_of(function)
        self._parameter, self._kind = _plan(function)
        self._is_async = is_async_callable(function)

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """Return no tools: the callable has its own."""
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Call it, in a thread where it is synchronous, and return the conversation."""
        opening = ctx.request.messages
        given = self._input(ctx.request)
        call = functools.partial(self.function, given)
        if self._parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            call = functools.partial(self.function, **{self._parameter.name: given})
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
        return ctx.complete(messages)

    def _input(self, request: RolloutRequest) -> Any:
        if self._kind == "messages":
            return copy.deepcopy(request.messages)
        user = _texts(request.messages, "user")[-1]
        if self._kind == "text":
            return user
        row = copy.deepcopy(request.metadata)
        for name in _ONLY_IN_EVALUATIONS:
            row.pop(name, None)
        system = _texts(request.messages, "system")[0]
        return {**row, "system_prompt": system, "user_prompt": user}

    def _messages(
        self, returned: Any, opening: list[Message], ctx: RolloutContext
    ) -> list[Message]:
        """Return the whole conversation; a list that begins with the row's messages is that.

        What the callable's recorded clients said stands before what it returned; an answer that
        is the last of them stands once.
        """
        said = _as_messages(returned)
        recorded = [] if ctx.recorded is None else ctx.recorded.conversation()
        if recorded and not isinstance(returned, list | tuple):
            if said is None:
                text = returned if isinstance(returned, str) else self._json(returned)
                said = [{"role": "assistant", "content": text}]
            answer = text_of(said[0].get("content")).strip()
            return (
                recorded if last_assistant_text(recorded).strip() == answer else [*recorded, *said]
            )
        if said is None:
            text = returned if isinstance(returned, str) else self._json(returned)
            said = [{"role": "assistant", "content": text}]
        elif said[: len(opening)] == opening:
            return said
        return [*opening, *said]

    def _json(self, value: Any) -> str:
        came = "None"
        try:
            if value is not None:
                return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            came = f"{type(value).__name__}, which JSON does not have ({error})"
        raise OsmosisValidationError(f"{self.name} returned {came}; {_RETURNED}")


def _texts(messages: Iterable[Message], role: str) -> list[str]:
    """Return the texts of one role; an empty one where there is none."""
    return [text_of(each.get("content")) for each in messages if each.get("role") == role] or [""]


def _as_messages(returned: Any) -> list[Message] | None:
    """Return what is a message, or a list of such, as dicts; None for anything else."""
    each = returned if isinstance(returned, list | tuple) else [returned]
    found = [as_message(one) for one in each]
    is_said = bool(found) and all(
        isinstance(one, Mapping) and isinstance(one.get("role"), str) for one in found
    )
    return [dict(one) for one in found] if is_said else None


def as_message(message: Any) -> Any:
    """Return a message as a dict, where it is a client library's object for one."""
    dump = getattr(message, "model_dump", None)
    if not callable(dump) or not isinstance(getattr(message, "role", None), str):
        return message
    return dump(exclude_none=True)
