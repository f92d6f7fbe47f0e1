from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, Dict, Optional  # noqa: UP035

import pytest

from osmosis_ai import osmosis_reward, osmosis_rubric
from osmosis_ai.secret import Secret

if TYPE_CHECKING:
    from decimal import Decimal

Extra = Optional[Dict[str, Any]]  # noqa: UP006, UP045


@osmosis_rubric
def rubric(solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
    return 1.0


INFO = {"provider": "openai", "model": "gpt", "rubric": "be kind", "api_key_env": "KEY"}


def decorated_without_future_annotations(source: str) -> Any:
    """Define `f` in a module whose annotations are objects, not text."""
    scope: dict[str, Any] = {"osmosis_reward": osmosis_reward, "osmosis_rubric": osmosis_rubric}
    code = compile(f"from typing import *\n{source}", "user.py", "exec", dont_inherit=True)
    exec(code, scope)
    return scope["f"]


def test_a_reward_returns_its_float_and_keeps_its_name_and_docstring():
    @osmosis_reward
    def exact(solution_str: str, ground_truth: str, extra_info: dict = None) -> float:  # noqa: RUF013
        """Exact match."""
        return 1.0 if solution_str == ground_truth else 0.0

    assert exact("a", "a") == 1.0
    assert exact("a", ground_truth="b", extra_info={}) == 0.0
    assert (exact.__name__, exact.__doc__) == ("exact", "Exact match.")
    assert list(inspect.signature(exact).parameters) == [
        "solution_str",
        "ground_truth",
        "extra_info",
    ]


@pytest.mark.parametrize(
    "annotation",
    [
        "dict",
        "Optional[dict]",
        "dict | None",
        "None | dict",
        "Dict[str, Any]",
        "dict[str, int]",
        "Union[dict, None]",
        "Optional[Dict[str, Any]]",
    ],
)
@pytest.mark.parametrize("text", [True, False])
def test_a_rewards_extra_info_may_be_annotated_in_every_way_that_means_a_dict(annotation, text):
    quoted = repr(annotation) if text else annotation
    reward = decorated_without_future_annotations(
        f"@osmosis_reward\n"
        f"def f(solution_str: str, ground_truth: str, extra_info: {quoted} = None) -> float:\n"
        f"    return 0.5"
    )
    assert reward("a", "b") == 0.5


WRONG_SIGNATURES = {
    osmosis_reward: [
        ("()", "parameter 'solution_str' is missing; expected `solution_str: str`"),
        ("(answer: str)", "parameter 1 must be `solution_str: str`, found 'answer'"),
        ("(solution_str)", "parameter 1 must be `solution_str: str`, 'solution_str' has no annot"),
        ("(solution_str: bytes)", "'solution_str' is annotated bytes"),
        (
            "(solution_str: str)",
            "parameter 'ground_truth' is missing; expected `ground_truth: str`",
        ),
        (
            "(solution_str: str, truth: str)",
            "parameter 2 must be `ground_truth: str`, found 'truth",
        ),
        ("(solution_str: str, ground_truth: int)", "'ground_truth' is annotated int"),
        ("(solution_str: str, ground_truth: str | None)", "'ground_truth' is annotated str | None"),
        ("(solution_str: str, ground_truth: str = '')", "'ground_truth' must not have a default"),
        ("(solution_str: str, ground_truth: str)", "parameter 'extra_info' is missing"),
        ("(solution_str: str, ground_truth: str, info: dict = None)", "found 'info'"),
        ("(solution_str: str, ground_truth: str, extra_info: dict)", "'extra_info' has no default"),
        (
            "(solution_str: str, ground_truth: str, extra_info: dict = {})",
            "parameter 3 must be `extra_info: dict = None`, 'extra_info' has the default {}",
        ),
        ("(solution_str: str, ground_truth: str, extra_info: list = None)", "is annotated list"),
        ("(solution_str: str, ground_truth: str, extra_info: 'Nowhere' = None)", "Nowhere"),
        ("(solution_str: str, ground_truth: str, *, extra_info: dict = None)", "as keyword-only"),
        (
            "(solution_str: str, /, ground_truth: str, extra_info: dict = None)",
            "as positional-only",
        ),
        (
            "(solution_str: str, ground_truth: str, extra_info: dict = None) -> int",
            "the return annotation must be float, found int",
        ),
        (
            "(solution_str: str, ground_truth: str, extra_info: dict = None, *, bonus: float)",
            "parameter 'bonus' must have a default; expected a function that can be called with "
            "solution_str, ground_truth, extra_info alone",
        ),
        (
            "(solution_str: str, ground_truth: str, extra_info: dict = None) -> None",
            "the return annotation must be float",
        ),
        (
            "(solution_str: str, ground_truth: str, extra_info: dict = None) -> 'float | None'",
            "the return annotation must be float, found float | None",
        ),
    ],
    osmosis_rubric: [
        ("(solution_str: str, ground_truth: str, extra_info: dict = None)", "must not have a def"),
        ("(solution_str: str, ground_truth: str, extra_info: dict | None)", "is annotated dict |"),
        ("(solution_str: str, ground_truth: int | None, extra_info: dict)", "int | None"),
        ("(solution_str: str, ground_truth, extra_info: dict)", "'ground_truth' has no annotation"),
        ("(solution_str: str, ground_truth: str | None)", "expected `extra_info: dict`"),
        (
            "(solution_str: str, ground_truth: str | None, extra_info: dict, bonus: float)",
            "parameter 'bonus' must have a default",
        ),
    ],
}


@pytest.mark.parametrize(
    ("decorator", "signature", "problem"),
    [(decorator.__name__, *row) for decorator, rows in WRONG_SIGNATURES.items() for row in rows],
)
def test_a_wrong_signature_names_function_parameter_and_expectation(decorator, signature, problem):
    with pytest.raises(TypeError) as caught:
        decorated_without_future_annotations(f"@{decorator}\ndef f{signature}:\n    return 1.0")
    assert str(caught.value).startswith(f"@{decorator} f: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("truth", ["str", "str | None", "Optional[str]", "'str | None'"])
def test_a_rubrics_ground_truth_may_be_optional(truth):
    rubric = decorated_without_future_annotations(
        f"@osmosis_rubric\n"
        f"def f(solution_str: str, ground_truth: {truth}, extra_info: dict) -> float:\n"
        f"    return 0.25"
    )
    assert rubric("a", None, INFO) == 0.25


def test_text_annotations_are_resolved_where_the_function_was_written():
    @osmosis_reward
    def reward(
        solution_str: str, ground_truth: str, extra_info: Extra = None, weight: Decimal = 1
    ) -> float:
        return float(bool(extra_info))

    assert reward("a", "b", {"x": 1}) == 1.0


def test_further_parameters_are_passed_on():
    @osmosis_reward
    def reward(
        solution_str: str,
        ground_truth: str,
        extra_info: dict | None = None,
        *more: int,
        scale: float = 1.0,
        **rest: Any,
    ) -> float:
        return scale * (len(more) + len(rest))

    assert reward("a", "b", None, 1, 2, scale=0.5, other=3) == 1.5


def test_a_data_source_keyword_is_dropped():
    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
        return 1.0

    assert reward("a", "b", data_source="gsm8k") == 1.0
    assert rubric("a", "b", INFO, data_source="gsm8k") == 1.0


@pytest.mark.parametrize(
    ("value", "found"), [(1, "int"), (True, "bool"), ("1", "str"), (None, "None")]
)
def test_a_return_that_is_no_float_is_a_type_error_at_the_call(value, found):
    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None):
        return value

    @osmosis_rubric
    async def rubric(solution_str: str, ground_truth: str, extra_info: dict):
        return value

    with pytest.raises(TypeError, match=f"@osmosis_reward reward: must return a float.*{found}"):
        reward("a", "b")
    with pytest.raises(TypeError, match=f"@osmosis_rubric rubric: must return a float.*{found}"):
        asyncio.run(rubric("a", "b", INFO))
    with pytest.raises(ValueError, match="@osmosis_rubric rubric: extra_info needs"):
        asyncio.run(rubric("a", "b", {**INFO, "model": None}))


def test_a_numpy_double_is_a_float():
    numpy = pytest.importorskip("numpy")

    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
        return numpy.float64(0.5)

    assert reward("a", "b") == 0.5


def test_async_functions_stay_async():
    @osmosis_reward
    async def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
        await asyncio.sleep(0)
        return 0.5

    assert inspect.iscoroutinefunction(reward)
    assert asyncio.run(reward("a", "b", data_source="x")) == 0.5


def test_a_plain_function_that_returns_an_awaitable_is_checked_when_awaited():
    async def later() -> int:
        return 1

    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None):
        return later()

    with pytest.raises(TypeError, match="returned int"):
        asyncio.run(reward("a", "b"))


def test_generators_are_refused():
    with pytest.raises(TypeError, match="is a generator"):

        @osmosis_reward
        def reward(solution_str: str, ground_truth: str, extra_info: dict | None = None):
            yield 1.0


def test_methods_of_every_kind_can_be_decorated():
    class Rewards:
        bonus = 0.5

        @osmosis_reward
        def plain(
            self, solution_str: str, ground_truth: str, extra_info: dict | None = None
        ) -> float:
            return self.bonus

        @osmosis_reward
        @classmethod
        def of_class(
            cls, solution_str: str, ground_truth: str, extra_info: dict | None = None
        ) -> float:
            return cls.bonus

        @staticmethod
        @osmosis_reward
        def static(solution_str: str, ground_truth: str, extra_info: dict | None = None) -> float:
            return 0.25

        @osmosis_rubric
        def judged(self, solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
            return self.bonus

        def undecorated(
            self, solution_str: str, ground_truth: str, extra_info: dict | None = None
        ) -> float:
            return self.bonus

    rewards = Rewards()
    assert rewards.plain("a", "b") == 0.5
    assert Rewards.of_class("a", "b") == 0.5
    assert Rewards.static("a", "b") == 0.25
    assert rewards.judged("a", None, INFO) == 0.5
    assert osmosis_reward(rewards.undecorated)("a", "b") == 0.5


def test_partials_and_callable_objects_can_be_decorated():
    def scaled(
        solution_str: str, ground_truth: str, extra_info: dict | None = None, *, scale: float
    ) -> float:
        return scale

    class Reward:
        async def __call__(
            self, solution_str: str, ground_truth: str, extra_info: dict | None = None
        ) -> float:
            return 0.75

    assert osmosis_reward(functools.partial(scaled, scale=0.5))("a", "b") == 0.5
    assert asyncio.run(osmosis_reward(Reward())("a", "b")) == 0.75


@pytest.mark.parametrize("thing", [3, "f", int, None])
def test_things_that_are_no_functions_are_refused(thing):
    with pytest.raises(TypeError, match="expected a function"):
        osmosis_reward(thing)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, "b", INFO), TypeError, "solution_str must be a str, not int"),
        (
            ("a", 2, INFO),
            TypeError,
            "ground_truth must be a str, list, dict, bool or None, not int",
        ),
        (("a", None, None), TypeError, "extra_info must be a dict, not None"),
        (("a", None), TypeError, "missing a required argument: 'extra_info'"),
    ],
)
def test_a_rubric_refuses_arguments_of_the_wrong_type(arguments, error, message):
    with pytest.raises(error) as caught:
        rubric(*arguments)
    assert str(caught.value) == f"@osmosis_rubric {rubric.__name__}: {message}"


@pytest.mark.parametrize("missing", ["provider", "model", "rubric", "api_key_env"])
@pytest.mark.parametrize("value", [None, "", "  ", 7])
def test_a_rubric_names_what_extra_info_lacks_and_shows_none_of_its_values(missing, value):
    info = {**INFO, "system_prompt": "sk-do-not-show", missing: value}
    with pytest.raises(ValueError) as caught:
        rubric("a", None, info)
    wanted = "api_key or api_key_env" if missing == "api_key_env" else missing
    assert str(caught.value) == f"@osmosis_rubric rubric: extra_info needs a non-empty {wanted}"


def test_a_rubric_names_everything_that_is_missing_at_once():
    with pytest.raises(ValueError, match=r"provider.*model.*rubric.*api_key or api_key_env"):
        rubric("a", None, {"provider": None})


@pytest.mark.parametrize("info", [{}, {"metadata": {}}, {"score_min": "?", "original_input": 7}])
def test_a_rubric_with_its_own_configuration_gets_what_extra_info_there_is(info):
    @osmosis_rubric
    def rubric(solution_str: str, ground_truth: str, extra_info: dict, **kwargs) -> float:
        return 1.0 if extra_info is info else 0.0

    assert rubric("a", "b", info) == 1.0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("score_min", "0", "a finite number, not str"),
        ("score_max", True, "a finite number, not bool"),
        ("score_max", float("inf"), "a finite number, not float"),
        ("system_prompt", ["sk-do-not-show"], "a str, not list"),
        ("model_info_overrides", "sk-do-not-show", "a dict, not str"),
    ],
)
def test_a_rubric_names_an_optional_field_of_the_wrong_type(name, value, expected):
    with pytest.raises(ValueError) as caught:
        rubric("a", None, {**INFO, name: value})
    assert str(caught.value) == f"@osmosis_rubric rubric: extra_info[{name!r}] must be {expected}"


def test_a_rubric_refuses_bounds_that_no_score_is_within():
    with pytest.raises(ValueError, match=r"'score_min'\] \(2\) must be below 'score_max' \(1\)"):
        rubric("a", None, {**INFO, "score_min": 2, "score_max": 1.0})
    assert rubric("a", None, {**INFO, "score_min": 2}) == 1.0


@pytest.mark.parametrize(
    "key",
    [
        {"api_key": "sk-1"},
        {"api_key": Secret("sk-1", "KEY")},
        {"api_key": "", "api_key_env": "KEY"},
        {"model_info_overrides": {"api_key_env": "KEY"}},
    ],
)
def test_a_rubric_takes_its_key_in_every_documented_place(key):
    info = {"provider": "openai", "model": "gpt", "rubric": "be kind", **key}
    assert rubric("a", None, info) == 1.0
