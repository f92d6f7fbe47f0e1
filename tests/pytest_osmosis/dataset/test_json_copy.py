"""A copy shares nothing that can be changed, whatever the value holds."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.dataset.json_copy import json_copy

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(
    ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@given(JSON)
def test_json_is_copied(value: object):
    assert json_copy(value) == value


def test_the_copy_can_be_changed_alone():
    given = {"a": [{"b": 1}], "when": date(2026, 1, 1), "of": {1, 2}}
    copied = json_copy(given)
    copied["a"][0]["b"] = 2
    copied["of"].add(3)
    assert given == {"a": [{"b": 1}], "when": date(2026, 1, 1), "of": {1, 2}}


def test_a_list_that_holds_itself_is_copied_too():
    cycle: list[object] = []
    cycle.append(cycle)
    copied = json_copy(cycle)
    assert copied is not cycle
    assert copied[0] is copied
