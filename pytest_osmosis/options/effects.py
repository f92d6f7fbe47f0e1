"""Options that could have no effect, by what the table says of each: refused in one sentence.

`check_combinations` looks at the options alone, `check_reach` at the agents that they are for. Both
raise `pytest.UsageError`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import pytest

from .table import BY_NAME, OPTIONS, Option, Reach

if TYPE_CHECKING:
    from ..rollouts.suite import Suite
    from .reader import OptionReader

_WRAPPER = """

    def agent(question, model, base_url, api_key):
        return ask(question, OpenAI(base_url=base_url, api_key=api_key), model)
"""
_ADVICE: dict[Reach, str] = {
    "model": "which asks a model of its own: leave it out, or take the evaluated model as "
    f"parameters:{_WRAPPER}",
    "endpoint": "which asks a model of its own: leave it out, or take the evaluated model and its "
    f"address as parameters:{_WRAPPER}",
    "usage": "which asks a model of its own, so that nothing is known of its calls: leave it out, "
    "have its client recorded (osmosis_ai.record(client)), or take the evaluated model as "
    f"parameters:{_WRAPPER}",
    "turns": "which is not given the number of turns: leave it out; agent loops, functions of "
    "`ctx` (ctx.request.max_turns) and programs are",
    "system": "which is given the question alone: leave it out, or have the function take "
    "`messages` or `row`",
    "program": "which is no program: leave it out; code in this process sees every variable",
}


def check_combinations(given: OptionReader) -> None:
    """Refuse options that exclude each other, and those that lack another."""
    present = [option for option in OPTIONS if _is_given(given, option.name)]
    for option in present:
        for other in option.excludes:
            if _is_given(given, other):
                raise pytest.UsageError(
                    f"{given.spelled(option.name)} and {given.spelled(other)} contradict each "
                    "other: give one of them"
                )
        for other in option.replaces:
            if _is_given(given, other):  # the reader hides those that are replaced
                raise pytest.UsageError(
                    f"{given.spelled(other)} has no effect beside {given.spelled(option.name)}: "
                    "leave out one of them"
                )
    for option in present:
        if option.needs and not _has_one(given, option):
            needed = " or ".join(BY_NAME[name].flag_name for name in option.needs)
            raise pytest.UsageError(f"{given.spelled(option.name)} needs {needed} too")


def _is_given(given: OptionReader, name: str) -> bool:
    return name in BY_NAME and given.raw(name) not in (None, False, [])


def _has_one(given: OptionReader, option: Option) -> bool:
    """Return whether an option has what it needs; of what is evaluated, the ini may have a part."""
    if "data" in option.needs and not given.on_command_line(option.name):
        return True
    return any(_is_given(given, name) for name in option.needs)


def check_reach(given: OptionReader, suites: Iterable[Suite]) -> None:
    """Refuse options that reach none of the agents, and models that not every agent takes."""
    named = {suite.spec.agent: _reach(suite) for suite in suites if not suite.spec.scored_by_test}
    if not named:
        return
    _check_models(given, named)
    for option in OPTIONS:
        part = option.reaches
        if part in (None, "model") or not given.raw(option.name):
            continue  # an empty system prompt says that there is none
        if not any(part in reach for reach in named.values()):
            _refuse(given, option.name, next(iter(named)), part)


def _check_models(given: OptionReader, named: dict[str, frozenset[Reach]]) -> None:
    """Refuse models that not every agent takes: its figures would stand under their names."""
    lacking = [agent for agent, reach in named.items() if "model" not in reach]
    if not lacking:
        return
    is_compared = len(given("model")) > 1
    is_unused = given.on_command_line("model") and len(lacking) == len(named)
    if is_compared or is_unused:
        _refuse(given, "model", lacking[0], "model")
    for option in OPTIONS:
        if option.reaches == "model" and option.name != "model" and given.raw(option.name):
            _refuse(given, option.name, lacking[0], "model")


def _reach(suite: Suite) -> frozenset[Reach]:
    reach: frozenset[Reach] = suite.agent.reach
    return reach | {"usage"} if knows_calls(reach) else reach


def knows_calls(reach: Collection[str]) -> bool:
    """Return whether model calls of an agent are seen: at our endpoint, or by `record`."""
    return "endpoint" in reach or "osmosis_ai.recording" in sys.modules


def _refuse(given: OptionReader, name: str, agent: str, part: Reach | None) -> None:
    assert part is not None
    raise pytest.UsageError(f"{given.spelled(name)} {unreached(agent, part)}")


def unreached(agent: str, part: Reach) -> str:
    """Return why an option cannot reach an agent, and what to do, to stand behind its name."""
    return f"cannot reach {agent}, {_ADVICE[part].rstrip()}"
