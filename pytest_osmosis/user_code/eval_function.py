"""One call of an eval function: copies in, one finite number out.

What the function itself raises propagates untouched. Does not know which rows and runs there are,
nor in which thread a synchronous function runs; `returned_score` reads what is not a plain float.

    (solution_str, ground_truth, extra_info)    simple mode
    (messages, ground_truth, metadata)          full mode

The parameters' names decide, not their order; `eval_shapes` has the signatures of other libraries.
Only what the function names is passed, all three with `**kwargs`; what a `functools.partial` has
bound stays bound.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dataset.json_copy import json_copy
from ..errors import EvalFnError
from .classify_agent import instantiated
from .import_object import ImportingError, kind_of, load_object

if TYPE_CHECKING:
    from .eval_shapes import Shape

ACCEPTED = "(solution_str, ground_truth, extra_info) or (messages, ground_truth, metadata)"
_SIMPLE = ("solution_str", "ground_truth", "extra_info")
_FULL = ("messages", "ground_truth", "metadata")
_AVAILABLE = {*_SIMPLE, *_FULL, "data_source"}


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How a function is called: read from its signature once."""

    positional: tuple[tuple[str | None, Any], ...]
    """For each positional-only parameter the argument's name, or None and the default."""
    keywords: tuple[str, ...]
    used: tuple[str, ...]
    """The names of all arguments that are passed."""
    shape: Shape | None = None
    """What each is given, where these are not our own names."""


def plan_call(
    function: Callable[..., Any], *, spec: str, named: str, is_class: bool = False
) -> CallPlan:
    """The plan of a function that `spec` names; ImportingError says why there is none."""
    whole = _parameters(function, named)
    parameters = {name: each for name, each in whole.items() if name not in _bound(function)}
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    required = {
        name
        for name, each in parameters.items()
        if each.default is each.empty and each.kind not in variadic
    }
    names, shape = set(_AVAILABLE), None
    ours = parameters.keys() & {"solution_str", "messages"}
    if not ours or not required <= _AVAILABLE or "completions" in parameters:
        from .eval_shapes import Signature, find_shape  # few functions have these

        shape = find_shape(Signature(function, whole, spec, _bound(function), is_class), named)
        names = set(shape.sources)
    positional: list[tuple[str | None, Any]] = []
    keywords: list[str] = []
    for parameter in parameters.values():
        known = parameter.name in names
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = _FULL if "messages" in ours else _SIMPLE
            keywords += [each for each in rest if shape is None and each not in whole]
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append((parameter.name, None) if known else (None, parameter.default))
        elif known and parameter.kind is not parameter.VAR_POSITIONAL:
            keywords.append(parameter.name)
    used = (*(name for name, _ in positional if name is not None), *keywords)
    return CallPlan(tuple(positional), tuple(keywords), used, shape)


def is_async(function: object) -> bool:
    """Whether calling it only makes a coroutine, so that the call belongs on the event loop."""
    return inspect.iscoroutinefunction(_innermost(function))


def is_generator(function: object) -> bool:
    """Whether it has a `yield`, and so can never return a score."""
    inner = _innermost(function)
    return inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _bound(function: object) -> frozenset[str]:
    return frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()


def _parameters(function: Callable[..., Any], named: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ImportingError(
            f"{named}: {kind_of(function)} has no signature to read; "
            f"wrap it in a function {ACCEPTED}"
        ) from None


@dataclass(frozen=True, slots=True)
class EvalFn:
    """One eval function, ready to be called for any number of runs at once."""

    name: str
    """As the user gave it, `rewards:compute_reward`."""
    function: Callable[..., Any]
    is_async: bool
    """Whether the call itself belongs on the event loop; awaitable results are always awaited."""
    plan: CallPlan

    @property
    def needs_conversation(self) -> bool:
        """Whether the last assistant text, the ground truth and the row are not enough."""
        shape = self.plan.shape
        return "messages" in self.plan.used if shape is None else shape.needs_conversation

    def missing_columns(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return which columns it cannot do without that none of the rows has."""
        missing = [] if self.plan.shape is None else [*self.plan.shape.columns]
        for row in rows if missing else ():
            missing = [name for name in missing if name not in row]
            if not missing:
                break
        return missing

    @property
    def refuse_ground_truth(self) -> Callable[[Any], tuple[str, str] | None] | None:
        """What a ready scorer says is wrong with a ground truth, before there is an answer."""
        return getattr(self.function, "refuse_ground_truth", None)

    @property
    def refuse_row(self) -> Callable[[Any, Mapping[str, Any]], str | None] | None:
        """What a ready scorer says is wrong with a ground truth and its row, in a sentence."""
        return getattr(self.function, "refuse_row", None)

    @property
    def used_setting(self) -> tuple[str, Callable[[Any], bool]] | None:
        """A setting of a ready scorer, and whether it says anything of a ground truth."""
        return getattr(self.function, "used_setting", None)

    @property
    def notice(self) -> str | None:
        """What users should know before it is called, in a sentence."""
        return getattr(self.function, "notice", None)

    @property
    def reads_own_truth(self) -> bool:
        """Whether it takes the ground truth as it stands in the file, a number as a number."""
        return getattr(self.function, "reads_own_truth", False)

    async def call(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        solution_str: str,
        ground_truth: Any,
        metadata: Mapping[str, Any],
        run_sync: Callable[[Callable[[], Any]], Awaitable[Any]],
        run_async: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]] | None = None,
        row: Callable[[], str] = str,
        source: str = "",
    ) -> float:
        """Return the score of one run; `source` names the data file.

        `run_sync` makes a synchronous call off the event loop; `run_async` makes one whose result
        it awaits. An EvalFnError names the `row`.
        """
        call = self._prepared(messages, solution_str, ground_truth, metadata, source)
        run_async = run_async or self.awaited
        try:
            result = await (run_async if self.is_async else run_sync)(call)
            if type(result) is not float and inspect.isawaitable(result):
                awaitable = result
                result = await run_async(lambda: awaitable)
        except SystemExit as error:  # it would end the event loop, and every other run with it
            raise EvalFnError(f"`{self.name}` called sys.exit({error.code!r})") from error
        if type(result) is float and math.isfinite(result) and self.plan.shape is None:
            return result
        from .returned_score import read_score  # most functions return a float

        with_list = self.plan.shape is not None and self.plan.shape.is_list
        return read_score(result, name=self.name, row=row(), is_list=with_list)

    async def awaited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call, and return what its awaitable comes to."""
        from osmosis_ai.running.forked import end_forked

        process = os.getpid()
        try:
            return await call()
        finally:
            if os.getpid() != process:
                end_forked()

    def _prepared(
        self,
        messages: Sequence[Mapping[str, Any]],
        solution_str: str,
        ground_truth: Any,
        metadata: Mapping[str, Any],
        source: str,
    ) -> Callable[[], Any]:
        shape = self.plan.shape
        given: dict[str, Any] = {"solution_str": solution_str, "ground_truth": ground_truth}
        if isinstance(ground_truth, list | dict):
            given["ground_truth"] = self._copy("ground_truth", ground_truth)
        copied = {"messages": messages, "metadata": metadata, "extra_info": metadata}
        for name in self.plan.used if shape is None else ("messages", "metadata"):
            if name in copied:
                given[name] = self._copy(name, copied[name])
            elif name == "data_source":
                given[name] = metadata.get(name, source)
        if isinstance(metadata.get("extra_info"), dict) and "extra_info" in given:
            given["extra_info"] = {**given["extra_info"]["extra_info"], **given["extra_info"]}
        keywords = self.plan.keywords
        if shape is not None:
            from .eval_shapes import Given

            given = shape.fill(
                Given(given["messages"], solution_str, given["ground_truth"], given["metadata"])
            )
            placed = {name for name, _ in self.plan.positional}
            keywords = tuple(name for name in given if name not in placed)
        positional = [given[name] if name else default for name, default in self.plan.positional]
        return functools.partial(
            self.function, *positional, **{name: given[name] for name in keywords}
        )

    def _copy(self, name: str, value: object) -> Any:
        try:
            return json_copy(value)
        except Exception as error:
            from osmosis_ai.error_text import named_error  # the package is not needed before

            reason = named_error(error)
            raise EvalFnError(f"the {name} cannot be copied for `{self.name}`: {reason}") from error


def load_eval_fns(
    specs: Iterable[str], *, option: str, roots: Sequence[Path]
) -> tuple[EvalFn, ...]:
    """The eval functions that an option names, in order; ImportingError says what is wrong."""
    names = [spec.strip() for spec in specs]
    refuse_double(names, option=option)
    return tuple(
        eval_fn(_function(name, option=option, roots=roots), name=name, option=option)
        for name in names
    )


def _function(name: str, *, option: str, roots: Sequence[Path]) -> object:
    """Return a ready scorer, or what `module:function` names."""
    if ":" not in name.partition("(")[0]:
        from osmosis_ai import scorers

        try:
            ready = scorers.named(name)
        except ValueError as error:
            raise ImportingError(f"{option} {name!r}: {error}") from None
        if ready is not None:
            return ready
    return load_object(name, option=option, roots=roots)


def refuse_double(names: Sequence[str], *, option: str) -> None:
    """ImportingError when a function is named twice: both would have the one name in a report."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ImportingError(f"{option} {name!r}: given twice; name each eval function once")


def eval_fn(function: object, *, name: str, option: str) -> EvalFn:
    """The EvalFn of a callable; ImportingError says why it cannot be one."""
    named = f"{option} {name!r}"
    is_class = False
    if inspect.isclass(function) and any("__call__" in vars(base) for base in function.__mro__):
        function, is_class = instantiated(function, spec=name, option=option), True
    if inspect.isclass(function) or not callable(function):
        raise ImportingError(f"{named}: is {kind_of(function)}; expected a function {ACCEPTED}")
    if is_generator(function):
        raise ImportingError(f"{named}: is a generator (it has `yield`); return the score instead")
    plan = plan_call(function, spec=name, named=named, is_class=is_class)
    return EvalFn(name, function, is_async(function), plan)
