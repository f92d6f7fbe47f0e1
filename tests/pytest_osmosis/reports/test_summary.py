"""The table of figures: what it keeps of long names."""

from __future__ import annotations

import pytest

from pytest_osmosis.reports.summary import fitted
from pytest_osmosis.reports.tables import Table
from pytest_osmosis.run_result import short_names

SERVED = "judge('correct', model='openai/m', api_base='http://localhost:8101/v1')"
OTHER = "judge('correct', model='openai/m', api_base='http://localhost:8102/v1')"
METHOD = "customer_support.rewards.orders:the_order_is_named"


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        ((SERVED, METHOD), 80, ("judge('correct', model='openai/m', …", f"…{METHOD[-35:]}")),
        (("rewards:exact", METHOD), 42, ("exact", "the_order_is_named")),
        ((SERVED, OTHER), 99, (SERVED, OTHER)),
    ],
)
def test_a_judges_name_keeps_its_beginning_a_functions_its_end(
    names: tuple[str, ...], width: int, shown: tuple[str, ...]
):
    table = Table(["eval function", "mean"], [[name, "0.500"] for name in names])
    lines = [*fitted(table, width)][1:]
    assert [line.removesuffix("0.500").rstrip() for line in lines] == [*shown]


def test_the_settings_of_a_ready_scorer_are_no_module():
    assert short_names(SERVED) == (SERVED, "judge")
    assert short_names("rewards:exact") == ("exact", "rewards:exact")
    assert short_names("my (old)/rewards.py:exact")[0] == "exact"
