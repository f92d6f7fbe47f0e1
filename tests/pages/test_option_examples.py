"""The page of options: the example of each group is accepted, and evaluates what it says."""

from __future__ import annotations

import pytest

from docs.extensions.option_examples import INTRODUCTIONS, SUITE
from pytest_osmosis.features.table import GROUPS

from .shell import Shell


def test_an_introduction_is_that_of_a_group_of_options():
    assert {*INTRODUCTIONS} <= {*GROUPS}


@pytest.mark.slow
def test_the_example_of_a_group_is_accepted(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", "sk-of-the-page-of-options")
    for each in filter(lambda each: each.example, INTRODUCTIONS.values()):
        line = f"{SUITE} {each.example}".replace("\\\n", " ")
        assert shell(f"{line} --collect-only -q") == 0, f"{line}\n{shell.printed}"
