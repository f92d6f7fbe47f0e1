from __future__ import annotations

import asyncio
import copy
import functools
import math
import sys
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from osmosis_ai import osmosis_reward
from osmosis_ai.rubric.reasons import collect_reasons
from osmosis_ai.running.thread_calls import CallThreads
from pytest_osmosis.errors import EvalFnError
from pytest_osmosis.user_code.eval_function import (
    EvalFn,
    eval_fn,
    load_eval_fns,
)
from pytest_osmosis.user_code.import_object import ImportingError

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": "#### 5", "tool_calls": None},
]
METADATA = {"level": 3, "tags": ["a"], "user_prompt": "2 + 3?", "ground_truth": "5"}
SCORES = "a finite float, a mapping or an object with 'score', or (score, reason)"
ACCEPTED = "(solution_str, ground_truth, extra_info) or (messages, ground_truth, metadata)"


def built(function: object) -> EvalFn:
    return eval_fn(function, name="rewards:f", option="--eval-fn")


def refusal(function: object) -> str:
    with pytest.raises(ImportingError) as caught:
        built(function)
    return str(caught.value).removeprefix("--eval-fn 'rewards:f': ")


async def off_the_loop(call: Callable[[], Any]) -> Any:
    threads = CallThreads()
    try:
        return await threads.run(call)
    finally:
        threads.close()


def score(function: object, **changes: Any) -> float:
    given: dict[str, Any] = {
        "messages": MESSAGES,
        "solution_str": "#### 5",
        "ground_truth": "5",
        "metadata": METADATA,
        "run_sync": off_the_loop,
        "row": lambda: "row-3",
    }
    return asyncio.run(built(function).call(**{**given, **changes}))


def seen_by(make: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    score(make(seen))
    return seen


class TestWhatIsGiven:
    def test_simple_mode_gets_the_solution(self):
        def make(seen):
            def f(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
                seen.update(s=solution_str, g=ground_truth, e=extra_info)
                return 1.0

            return f

        assert seen_by(make) == {"s": "#### 5", "g": "5", "e": METADATA}

    def test_full_mode_gets_the_messages(self):
        def make(seen):
            async def f(messages, ground_truth, metadata):
                seen.update(m=messages, g=ground_truth, e=metadata)
                return 1.0

            return f

        assert seen_by(make) == {"m": MESSAGES, "g": "5", "e": METADATA}

    def test_only_the_named_parameters_are_passed(self):
        assert score(lambda solution_str, extra_info: extra_info["level"]) == 3.0
        assert score(lambda messages: len(messages)) == 3.0
        assert score(lambda solution_str, weight=0.25: weight) == 0.25

    def test_keyword_arguments_get_what_is_not_named(self):
        assert score(lambda solution_str, **rest: sorted(rest) == ["extra_info", "ground_truth"])
        assert score(lambda messages, metadata, **rest: sorted(rest) == ["ground_truth"])

    @pytest.mark.fault("an eval function has positional-only parameters or `**kwargs`")
    def test_positional_only_parameters_are_given_by_place(self):
        def f(solution_str, weight=0.5, ground_truth=None, /, *rest, extra_info):
            return weight * (ground_truth == "5") * (rest == ()) * len(extra_info)

        assert score(f) == 2.0

    def test_names_decide_and_not_their_order(self):
        def f(data_source, ground_truth, *, extra_info, solution_str):
            return (data_source, ground_truth, solution_str) == ("gsm", "5", "#### 5")

        assert score(f, source="gsm") == 1.0
        assert score(lambda metadata, messages: len(messages) + metadata["level"]) == 6.0
        assert score(f, metadata={**METADATA, "data_source": "gsm"}) == 1.0

    def test_a_column_extra_info_is_seen_through(self):
        row = {**METADATA, "extra_info": {"index": 7, "level": 0}}
        assert score(lambda solution_str, extra_info: extra_info["index"], metadata=row) == 7.0
        assert score(lambda solution_str, extra_info: extra_info["level"], metadata=row) == 3.0

    def test_a_missing_ground_truth_is_none(self):
        assert score(lambda solution_str, ground_truth: ground_truth is None, ground_truth=None)

    @pytest.mark.fault("an eval function changes what it is given")
    def test_functions_get_copies_whatever_they_do_to_them(self):
        messages, metadata = copy.deepcopy(MESSAGES), copy.deepcopy(METADATA)

        def spoil(messages, metadata):
            messages[0]["content"] = "spoilt"
            messages.clear()
            metadata["tags"].append("spoilt")
            return 1

        async def call_twice():
            function = built(spoil)
            for _ in range(2):
                await function.call(
                    messages=messages,
                    solution_str="",
                    ground_truth=None,
                    metadata=metadata,
                    run_sync=off_the_loop,
                )

        asyncio.run(call_twice())
        assert (messages, metadata) == (MESSAGES, METADATA)

    def test_what_cannot_be_copied_is_reported(self):
        with pytest.raises(
            EvalFnError, match="the metadata cannot be copied for `rewards:f`: Type"
        ):
            score(lambda messages, metadata: 1, metadata={"lock": threading.Lock()})
        assert score(lambda messages: 1, metadata={"lock": threading.Lock()}) == 1.0


class Scorer:
    def __init__(self, bonus: float = 0.5) -> None:
        self.bonus = bonus

    def __call__(self, solution_str: str) -> float:
        return self.bonus

    def method(self, messages: list[dict[str, Any]]) -> float:
        return self.bonus

    @staticmethod
    def static(solution_str: str) -> float:
        return 0.5

    @classmethod
    def of_class(cls, solution_str: str) -> float:
        return 0.5


class AsyncScorer:
    async def __call__(self, messages):
        return 0.5


class NeedyScorer(Scorer):
    def __init__(self, bonus: float) -> None:
        super().__init__(bonus)


async def async_score(messages, ground_truth):
    await asyncio.sleep(0)
    return 0.5


def with_threshold(threshold, solution_str):
    return threshold


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class TestCallables:
    @pytest.mark.parametrize(
        "function",
        [
            Scorer(),
            Scorer,
            Scorer().method,
            Scorer.static,
            Scorer.of_class,
            AsyncScorer(),
            AsyncScorer,
            async_score,
            functools.partial(async_score, ground_truth=None),
            functools.partial(with_threshold, 0.5),
            functools.partial(functools.partial(with_threshold, 0.5)),
            logged(async_score),
            logged(Scorer()),
            lambda solution_str: async_score([], None),
        ],
        ids=lambda function: getattr(function, "__qualname__", type(function).__name__),
    )
    def test_every_sort_of_callable_can_score(self, function):
        assert score(function) == 0.5

    def test_what_a_partial_has_bound_stays_bound(self):
        bound = functools.partial(
            lambda solution_str, ground_truth, **rest: ground_truth == "mine" and len(rest),
            ground_truth="mine",
        )
        assert score(bound) == 1.0

    @pytest.mark.fault("an eval function is a partial, a callable object, or decorated")
    def test_decorated_rewards_work_unmodified(self):
        @osmosis_reward
        def compute(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
            return 1.0 if solution_str.endswith(ground_truth) else 0.0

        assert score(compute) == 1.0

    def test_sync_functions_leave_the_loop_and_async_ones_stay(self):
        def threads(function):
            where = []
            score(function(where))
            return where

        def sync(where):
            return lambda solution_str: where.append(threading.current_thread()) or 1

        def asynchronous(where):
            async def f(solution_str):
                where.append(threading.current_thread())
                return 1

            return f

        assert threads(sync) != [threading.main_thread()]
        assert threads(asynchronous) == [threading.main_thread()]
        assert built(AsyncScorer()).is_async
        assert built(functools.partial(async_score, ground_truth="")).is_async


class TestRefusedFunctions:
    @pytest.mark.fault("something is not callable, or its parameters' names fit nothing")
    @pytest.mark.parametrize(
        ("function", "sentence"),
        [
            (lambda a, b: 1, "takes (a, b), and the names do not say which is the answer"),
            (lambda: 1, "takes (), and cannot see the answer; expected solution_str"),
            (lambda *args: 1, "takes (*args), and the names do not say"),
            (lambda **kwargs: 1, "takes (**kwargs), and the names do not say"),
            (lambda messages, expected: 1, "and nothing is passed for 'expected'; wrap it"),
            (3, f"is an int; expected a function {ACCEPTED}"),
            (None, f"is a NoneType; expected a function {ACCEPTED}"),
            (int, f"is the class int; expected a function {ACCEPTED}"),
            (NeedyScorer, "the class NeedyScorer needs 'bonus' to be made"),
            (len, "takes (obj, /), and 'obj' does not say what it is"),
            (dict.fromkeys, "'iterable' does not say what it is"),
        ],
    )
    def test_a_wrong_signature_is_reported_with_the_accepted_ones(self, function, sentence):
        message = refusal(function)
        assert sentence.replace(", /", "") in message.replace(", /", "")

    def test_annotations_do_not_blow_up_the_signature(self):
        def f(a: dict[str, list[int]] = {}, *, n: int = 3) -> float: ...  # noqa: B006

        assert refusal(f).startswith(("takes (a={}, *, n=3),", "takes (a={}, n=3),"))

    def test_a_builtin_without_signature_is_refused(self):
        assert "no signature to read" in refusal(iter)

    @pytest.mark.fault("a plain function returns an awaitable, or a generator")
    def test_generators_are_refused_before_they_run(self):
        def gen(solution_str):
            yield 1.0

        async def async_gen(messages):
            yield 1.0

        for function in (gen, async_gen, functools.partial(gen)):
            assert refusal(function) == "is a generator (it has `yield`); return the score instead"


class TestScores:
    @pytest.mark.fault(
        "an eval function returns a bool, a numpy number, a mapping, None, text or a Decimal",
        "a score is outside 0 … 1",
    )
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (0.25, 0.25),
            (1, 1.0),
            (True, 1.0),
            (False, 0.0),
            (-3, -3.0),
            (np.float32(0.5), 0.5),
            (np.float64(0.5), 0.5),
            (np.int64(2), 2.0),
            (np.bool_(True), 1.0),
        ],
    )
    def test_finite_numbers_are_scores(self, value, expected):
        result = score(lambda solution_str: value)
        assert isinstance(result, float)
        assert result == expected

    @pytest.mark.parametrize(
        ("value", "described"),
        [
            (math.nan, "nan"),
            (math.inf, "inf"),
            (-math.inf, "-inf"),
            (np.float32("nan"), "nan (a float32)"),
            (None, "None"),
            ("0.5", "'0.5' (a str)"),
            (10**400, "an int too large for a float"),
            (Decimal("0.5"), "Decimal('0.5') (a Decimal)"),
            (Fraction(1, 2), "Fraction(1, 2) (a Fraction)"),
            (np.array([0.5]), "array([0.5]) (a ndarray)"),
            (np.complex64(1), "(a complex64)"),
            ([1.0], "[1.0] (a list)"),
            (1j, "1j (a complex)"),
            ((i for i in ()), "a generator (it has `yield`)"),
            ("\x1b[31m" * 50, "(a str)"),
        ],
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.fault(
        "an eval function returns NaN or infinity",
        "an eval function returns a bool, a numpy number, a mapping, None, text or a Decimal",
    )
    def test_anything_else_is_an_error_that_names_it(self, value, described):
        with pytest.raises(EvalFnError) as caught:
            score(lambda solution_str: value)
        message = str(caught.value)
        assert message.startswith("`rewards:f` returned ")
        assert message.endswith(f"{described} for row-3; expected {SCORES}")
        assert message.isprintable() and len(message) < 300

    def test_numpy_may_be_half_imported_by_another_thread(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "numpy", ModuleType("numpy"))
        assert score(lambda solution_str: 0.5) == 0.5
        with pytest.raises(EvalFnError, match="expected a finite float"):
            score(lambda solution_str: "0.5")

    def test_the_row_may_be_left_out_of_the_message(self):
        with pytest.raises(EvalFnError) as caught:
            score(lambda solution_str: None, row=str)
        assert str(caught.value) == f"`rewards:f` returned None; expected {SCORES}"

    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_what_the_function_raises_comes_through(self, kind):
        def fail(solution_str):
            raise ZeroDivisionError("mine")

        async def fail_later(solution_str):
            return fail(solution_str)

        with pytest.raises(ZeroDivisionError, match="mine"):
            score(fail if kind == "sync" else fail_later)

    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_an_exit_does_not_end_the_loop(self, kind):
        def leave(solution_str):
            raise SystemExit(3)

        async def leave_later(solution_str):
            leave(solution_str)

        with pytest.raises(EvalFnError, match=r"`rewards:f` called sys.exit\(3\)"):
            score(leave if kind == "sync" else leave_later)

    def test_a_stray_stop_iteration_does_not_hang(self):
        with pytest.raises(RuntimeError, match="StopIteration"):
            score(lambda solution_str: next(iter(())))

    def test_a_stray_generator_exit_is_the_functions_own_error(self):
        def leave(solution_str):
            raise GeneratorExit

        with pytest.raises(RuntimeError, match="raised GeneratorExit"):
            score(leave)

    def test_a_cancelled_call_stays_cancelled(self):
        async def forever(solution_str):
            await asyncio.Event().wait()

        async def cancel():
            call = built(forever).call(
                messages=[], solution_str="", ground_truth="", metadata={}, run_sync=off_the_loop
            )
            await asyncio.wait_for(call, 0.01)

        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(cancel())


class TestLoading:
    def test_functions_are_loaded_in_order_with_their_names(self, tmp_path):
        (tmp_path / "graders_one.py").write_text(
            "def a(solution_str): return 1\nasync def b(messages): return 0\n"
        )
        names = ["graders_one:b", " graders_one:a "]
        functions = load_eval_fns(names, option="--eval-fn", roots=[tmp_path])
        assert [(f.name, f.needs_conversation) for f in functions] == [
            ("graders_one:b", True),
            ("graders_one:a", False),
        ]

    @pytest.mark.fault("an eval function is given twice")
    def test_a_function_given_twice_is_refused_by_name(self):
        with pytest.raises(ImportingError) as caught:
            load_eval_fns(["r:a", "r:b", "r:a"], option="--eval-fn", roots=[Path()])
        assert str(caught.value) == "--eval-fn 'r:a': given twice; name each eval function once"


class Verdict(NamedTuple):
    """As scorers of other libraries return it."""

    name: str
    score: object
    reason: str | None = None


class TestReasons:
    """A score, and why: a mapping, an object, or a pair."""

    def said(self, returned: object) -> tuple[float, list[str]]:
        with collect_reasons() as reasons:
            found = score(lambda solution_str: returned)
        return found, reasons

    def test_a_mapping_has_a_score_and_may_have_a_reason(self):
        assert self.said({"score": 0.5, "reason": "half"}) == (0.5, ["half"])
        assert self.said(MappingProxyType({"score": True, "reason": None})) == (1.0, [])
        assert self.said({"score": np.float32(0.25), "reason": " ", "more": 1}) == (0.25, [])

    def test_an_object_and_a_pair_have_them_too(self):
        assert self.said(Verdict("exact", 0.5, "half")) == (0.5, ["half"])
        assert self.said(SimpleNamespace(score=np.bool_(True))) == (1.0, [])
        assert self.said((0.25, "a quarter")) == (0.25, ["a quarter"])
        assert self.said((True, None)) == (1.0, [])

    def test_an_async_function_may_return_one(self):
        async def judge(messages):
            return {"score": 1, "reason": "right"}

        with collect_reasons() as reasons:
            assert score(judge) == 1.0
        assert reasons == ["right"]

    @pytest.mark.fault(
        "an eval function returns a bool, a numpy number, a mapping, None, text or a Decimal"
    )
    @pytest.mark.parametrize(
        ("returned", "says"),
        [
            ({}, "returned a mapping without 'score' for row-3 (its keys: none)"),
            ({"scroe": 1.0}, "without 'score' for row-3 (its keys: 'scroe')"),
            ({"score": None}, "returned None for row-3; expected a finite float"),
            ({"score": {"score": 1.0}}, "returned {'score': 1.0} (a dict) for row-3; expected"),
            ({"score": float("nan")}, "returned nan for row-3"),
            ({"score": 1.0, "reason": 3}, "returned the reason 3 (an int)"),
            ((1.0, 3), "returned the reason 3 (an int)"),
            ((1.0, "a", "b"), "returned (1.0, 'a', 'b') (a tuple) for row-3; expected a finite"),
            (Verdict("exact", None), "returned None for row-3; expected a finite float as score"),
            (Verdict, "returned <class "),
            (SimpleNamespace(score=len), "or (score, reason)"),
        ],
    )
    def test_any_other_mapping_is_an_error(self, returned, says):
        with pytest.raises(EvalFnError) as caught:
            self.said(returned)
        assert says in str(caught.value)
