"""Marked functions are seen where they are collected: the plugin that every pytest session has.

What makes items of them, `marker`, is imported for the first of them.
"""

from __future__ import annotations

from collections.abc import Generator
from inspect import isclass, isfunction
from typing import TYPE_CHECKING

import pytest

from ...items.decorator import MARKER
from ...options.reader import named
from ...session.current import BEGIN, evaluation_of

if TYPE_CHECKING:
    from .marker import MarkerPlugin

_LINE = (
    "osmosis(agent, data, n, pass_threshold, limit, offset, max_turns): run this test on every row "
    "and run of a dataset; its argument `rollout` is the finished rollout"
)


class MarkedFunctions:
    """The hooks that look for marked functions."""

    def __init__(self) -> None:
        self._marker: MarkerPlugin | None = None
        """There once a marked function belongs to an evaluation."""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Describe the marker."""
        config.addinivalue_line("markers", _LINE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # after a plugin has made the item its own
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, obj: object
    ) -> Generator[None, object, object]:
        """Begin an evaluation with the first marked function, where no option has named one.

        What makes suites of its parameters is called here: the plugin that it registers hears of
        no item that is being made already.
        """
        if isclass(obj) and any(_is_test_case(base) for base in obj.__mro__):
            if any(_is_marked(collector, each) for each in (obj, *vars(obj).values())):
                hint = "unittest runs the tests of a TestCase itself: mark a function, or another"
                pytest.fail(f"{obj.__name__}: {hint} class", pytrace=False)
        elif self._marker is None and _is_marked(collector, obj):
            self._take_part(collector.config)
        made = yield
        if self._marker is not None and isinstance(made, list):
            self._marker.divide(made)
        return made

    def _take_part(self, config: pytest.Config) -> None:
        if evaluation_of(config) is None:
            from ...session.selection import begins_with_tests

            if not hasattr(config, "workerinput") and begins_with_tests(config):
                config.stash[BEGIN](config)
        evaluation = evaluation_of(config)
        if evaluation is not None:
            from .marker import MarkerPlugin

            self._marker = MarkerPlugin(evaluation)
            config.pluginmanager.register(self._marker, "osmosis-marked")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrise a marked function, or fail it in a session without evaluations.

        Here and not in the plugin that is registered for the first of them: node ids name
        parameters in the order in which plugins were registered. Options may leave it out.
        """
        if self._marker is not None:
            self._marker.parametrise(metafunc)
        config, function = metafunc.config, metafunc.definition
        if evaluation_of(config) is not None or not function.get_closest_marker(MARKER):
            return
        from ...session.selection import mark_selects, waits_to_be_asked

        if not mark_selects(config):
            return
        where = f"{function.nodeid}: @pytest.mark.osmosis"
        if not named(config):
            pytest.fail(
                f"{where} needs osmosis_run = always in the ini file, or --osmosis-run=always, "
                "where workers run it",
                pytrace=False,
            )
        if waits_to_be_asked(config) or config.option.keyword:
            return
        pytest.fail(
            f"{where} was not seen in the text of this file: name the marker there, or select the "
            "function with -m osmosis",
            pytrace=False,
        )

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect marked functions that run only where they are asked for."""
        if evaluation_of(config) is not None or not named(config):
            return
        from ...session.selection import waits_to_be_asked

        if not waits_to_be_asked(config):
            return
        deselected = {item for item in items if item.get_closest_marker(MARKER)}
        if deselected:
            config.hook.pytest_deselected(items=list(deselected))
            items[:] = [item for item in items if item not in deselected]


def _is_test_case(base: type) -> bool:
    """Return whether it is `unittest.TestCase`, which nothing is imported for."""
    return (base.__module__, base.__qualname__) == ("unittest.case", "TestCase")


def _is_marked(collector: pytest.Collector, obj: object) -> bool:
    marks = getattr(obj, "pytestmark", ()) if isfunction(obj) or isclass(obj) else ()
    own = marks if isinstance(marks, list | tuple) else [marks]
    is_own = any(getattr(mark, "name", None) == MARKER for mark in own)
    return is_own or (isfunction(obj) and collector.get_closest_marker(MARKER) is not None)
