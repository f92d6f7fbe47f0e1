"""Items of which there may be a million: what pytest keeps with each is made when it is asked for.

Of the lists and mappings that pytest makes with every item nearly all stay empty, and take more
memory than the item itself. Knows pytest's items; does not know what ours stand for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest
from _pytest.mark.structures import NodeKeywords
from _pytest.nodes import Node

try:
    from _pytest.nodeid import NodeId
except ImportError:  # before 9.2 it is text
    NodeId = None  # type: ignore[assignment,misc]

_KNOWN = frozenset({
    *("name", "parent", "config", "session", "path", "_id", "_nodeid", "__dict__"),
    *("keywords", "own_markers", "extra_keyword_matches", "stash", "_store"),
    *("user_properties", "_report_sections"),
})  # fmt: skip
"""What a `LeanItem` has at once or on demand."""


class LeanItem(pytest.Item):
    """An item that is called `name[parameters]`.

    The first of a process is made by pytest: where that makes more of it than is known here, it
    makes all of them.
    """

    __slots__ = ("_marks",)
    parent: pytest.Collector
    _marks: list[pytest.Mark] | None
    _is_known = False

    def __init__(self, *, name: str, parameters: str, parent: pytest.Collector) -> None:
        whole = f"{name}[{parameters}]"
        nodeid = _node_id(parent, name, parameters)
        if not LeanItem._is_known:
            super().__init__(whole, parent, nodeid=nodeid)
            LeanItem._is_known = _KNOWN.issuperset([*vars(self), *Node.__slots__])
            return
        self.name, self.parent, self.path = whole, parent, parent.path
        self.config, self.session = parent.config, parent.session
        self._marks = None
        if NodeId is None:
            self._nodeid = nodeid
        else:
            self._id = nodeid

    @property
    def shared_id(self) -> Any:
        """The node id, in the form that reports can share with the item."""
        return self.nodeid if NodeId is None else self.id

    @property
    def is_marked(self) -> bool:
        """Whether it has markers of its own."""
        return bool(self._marks)

    @property
    def own_markers(self) -> list[pytest.Mark]:
        """Asked of every item that is run: what there is room for without a dictionary."""
        if self._marks is None:
            self._marks = []
        return self._marks

    @own_markers.setter
    def own_markers(self, marks: list[pytest.Mark]) -> None:
        self._marks = marks

    keywords: Any = cached_property(NodeKeywords)
    extra_keyword_matches: Any = cached_property(lambda item: set())
    stash: Any = cached_property(lambda item: pytest.Stash())
    _store: Any = cached_property(lambda item: item.stash)
    user_properties: Any = cached_property(lambda item: [])
    _report_sections: Any = cached_property(lambda item: [])


def _node_id(parent: pytest.Collector, name: str, parameters: str) -> Any:
    """Named whole: pytest 9.2 tells an id with parameters from a name with brackets."""
    if NodeId is None:
        return f"{parent.nodeid}::{name}[{parameters}]"
    return NodeId(path=parent.id.path, names=(name,), params=parameters)
