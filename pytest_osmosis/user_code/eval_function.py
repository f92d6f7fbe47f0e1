"""One call of an eval function: copies in, one finite number out, and the reason if it gave one.

What the function itself raises propagates untouched. Knows what counts as a score; does not know
which rows and runs there are, nor in which thread a synchronous function runs.

    (solution_str, ground_truth, extra_info)    simple mode
    (messages, ground_truth, metadata)          full mode

The first parameter's name decides. Only what the function names is passed, all three with
`**kwargs`; what a `functools.partial` has bound stays bound.

    Exception
      EvalFnError    no score was returned, sys.exit was called, or the input cannot be copied
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import reprlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ..dataset.json_copy import json_copy
from .classify_agent import instantiated
from .import_object import ImportingError, kind_of, load_object

Mode = Literal["simple", "full"]
ACCEPTED = "(solution_str, ground_truth, extra_info) or (messages, ground_truth, metadata)"
_GIVEN: dict[str, tuple[Mode, tuple[str, ...]]] = {
    "solution_str": ("simple", ("solution_str", "ground_truth", "extra_info")),
    "messages": ("full", ("messages", "ground_truth", "metadata")),
}

_KEYS_SHOWN = 5
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


class EvalFnError(Exception):
    """An eval function gave no score; `str()` names the function and what it returned."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How a function is called: read from its signature once."""

    mode: Mode
    positional: tuple[tuple[str | None, Any], ...]
    """For each positional-only parameter the argument's name, or None and the default."""
    keywords: tuple[str, ...]
    used: tuple[str, ...]
    """The names of all arguments that are passed."""


def plan_call(function: Callable[..., Any], *, named: str) -> CallPlan:
    """The plan of a function; ImportingError has the signature seen and the two accepted ones."""
    parameters = _parameters(function, named)
    mode, available = _GIVEN.get(next(iter(parameters), ""), (None, ()))
    if mode is None:
        raise ImportingError(
            f"{named}: takes ({_listed(parameters)}); the first parameter decides what it is "
            f"given: expected {ACCEPTED}"
        )
    left = [name for name in available if name not in _bound(function)]
    positional: list[tuple[str | None, Any]] = []
    keywords: list[str] = []
    for parameter in parameters.values():
        known = parameter.name in left
        if parameter.kind is parameter.VAR_KEYWORD:
            keywords += [name for name in left if name not in parameters]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            continue
        elif not known and parameter.default is parameter.empty:
            raise ImportingError(
                f"{named}: takes ({_listed(parameters)}), and nothing is passed for "
                f"{parameter.name!r}; expected {ACCEPTED}"
            )
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append((parameter.name, None) if known else (None, parameter.default))
        elif known:
            keywords.append(parameter.name)
    used = (*(name for name, _ in positional if name is not None), *keywords)
    return CallPlan(mode=mode, positional=tuple(positional), keywords=tuple(keywords), used=used)


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


def _listed(parameters: Mapping[str, inspect.Parameter]) -> str:
    bare = [parameter.replace(annotation=parameter.empty) for parameter in parameters.values()]
    return ", ".join(map(str, bare))


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
    def mode(self) -> Mode:
        """`simple` gets the last assistant text, `full` gets the messages."""
        return self.plan.mode

    @property
    def refuse_ground_truth(self) -> Callable[[str | None], tuple[str, str] | None] | None:
        """What a ready scorer says is wrong with a ground truth, before there is an answer."""
        return getattr(self.function, "refuse_ground_truth", None)

    @property
    def refuse_row(self) -> Callable[[Any, Mapping[str, Any]], str | None] | None:
        """What a ready scorer says is wrong with a ground truth and its row, in a sentence."""
        return getattr(self.function, "refuse_row", None)

    @property
    def reads_own_truth(self) -> bool:
        """Whether it takes the ground truth as it stands in the file, a number as a number."""
        return getattr(self.function, "reads_own_truth", False)

    async def call(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        solution_str: str,
        ground_truth: str | None,
        metadata: Mapping[str, Any],
        run_sync: Callable[[Callable[[], Any]], Awaitable[Any]],
        run_async: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]] | None = None,
        row: Callable[[], str] = str,
    ) -> float:
        """Return the score of one run.

        `run_sync` makes a synchronous call off the event loop; `run_async` makes one whose result
        it awaits. An EvalFnError names the `row`.
        """
        call = self._prepared(messages, solution_str, ground_truth, metadata)
        run_async = run_async or self.awaited
        try:
            result = await (run_async if self.is_async else run_sync)(call)
            if type(result) is not float and inspect.isawaitable(result):
                awaitable = result
                result = await run_async(lambda: awaitable)
        except SystemExit as error:  # it would end the event loop, and every other run with it
            raise EvalFnError(f"`{self.name}` called sys.exit({error.code!r})") from error
        if type(result) is float and math.isfinite(result):
            return result
        if isinstance(result, Mapping):
            return self._explained(result, row())
        return self._score(result, row())

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
        ground_truth: str | None,
        metadata: Mapping[str, Any],
    ) -> Callable[[], Any]:
        given: dict[str, Any] = {"solution_str": solution_str, "ground_truth": ground_truth}
        copied = {"messages": messages, "metadata": metadata, "extra_info": metadata}
        for name in self.plan.used:
            if name in copied:
                given[name] = self._copy(name, copied[name])
        positional = [given[name] if name else default for name, default in self.plan.positional]
        keywords = {name: given[name] for name in self.plan.keywords}
        return functools.partial(self.function, *positional, **keywords)

    def _copy(self, name: str, value: object) -> Any:
        try:
            return json_copy(value)
        except Exception as error:
            from osmosis_ai.error_text import named_error  # the package is not needed before

            reason = named_error(error)
            raise EvalFnError(f"the {name} cannot be copied for `{self.name}`: {reason}") from error

    def _explained(self, result: Mapping[Any, Any], row: str) -> float:
        """The score of a mapping; its reason goes where those of judges go."""
        where = f" for {row}" if row else ""
        if "score" not in result:
            keys = ", ".join(map(_short.repr, list(result)[:_KEYS_SHOWN])) or "none"
            raise EvalFnError(
                f"`{self.name}` returned a mapping without 'score'{where} (its keys: {keys})"
            )
        reason = result.get("reason")
        if reason is not None and not isinstance(reason, str):
            said = _describe(reason)
            raise EvalFnError(f"`{self.name}` returned the reason {said}{where}; expected text")
        if reason and reason.strip():
            from osmosis_ai.rubric.reasons import add_reason  # the package is not needed before

            add_reason(reason)
        return self._score(result["score"], row)

    def _score(self, result: object, row: str) -> float:
        if isinstance(result, (float, int)) or _is_numpy_number(result):
            try:
                score = float(result)  # type: ignore[arg-type]
            except OverflowError:
                score = math.inf
            if math.isfinite(score):
                return score
        where = f" for {row}" if row else ""
        raise EvalFnError(
            f"`{self.name}` returned {_described(result)}{where}; expected a finite float"
        )


def _is_numpy_number(value: object) -> bool:
    bases = ((base.__module__, base.__qualname__) for base in type(value).__mro__)
    return ("numpy", "generic") in bases and cast(Any, value).dtype.kind in "biuf"


def _described(value: object) -> str:
    if value is None or isinstance(value, float):
        return repr(value)
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return "a generator (it has `yield`)"
    if _is_numpy_number(value):
        return f"{value} ({kind_of(value)})"
    if isinstance(value, int):
        return "an int too large for a float"
    return _describe(value)


def _describe(value: object) -> str:
    text = _short.repr(value)
    printable = text if text.isprintable() else text.encode("unicode_escape").decode()
    return f"{printable} ({kind_of(value)})"


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
    if inspect.isclass(function) and any("__call__" in vars(base) for base in function.__mro__):
        function = instantiated(function, spec=name, option=option)
    if inspect.isclass(function) or not callable(function):
        raise ImportingError(f"{named}: is {kind_of(function)}; expected a function {ACCEPTED}")
    if is_generator(function):
        raise ImportingError(f"{named}: is a generator (it has `yield`); return the score instead")
    return EvalFn(name, function, is_async(function), plan_call(function, named=named))
