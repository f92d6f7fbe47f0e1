"""What a suite is compared with in another session: the same data, then the same candidate."""

from __future__ import annotations

import pytest

from pytest_osmosis.features.comparison.baseline import NoCounterpart, baselines_of, counterparts
from pytest_osmosis.suite_results import SuiteResult
from tests.support.made_results import result_of, suite_of


def suites(*texts: str) -> list[SuiteResult]:
    """Suites from `data by model`, each data file in `/p`; the first of its data leads."""
    found: dict[str, SuiteResult] = {}
    for text in texts:
        data, _, model = text.partition(" by ")
        agent, _, model = model.rpartition(" ")
        first = next((each.info.name for each in found.values() if each.info.group == data), None)
        name = f"{data} ({model})" if first else data
        found[text] = suite_of(
            [[1.0]],
            name=name,
            data=f"/p/{data}",
            model=model,
            agent=agent or "agent:run",
            leader=first,
        )
    return list(found.values())


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (["q by m"], ["other by n"], [0]),
        (["q by m", "r by m"], ["r by m", "q by m"], [1, 0]),
        (["a/q by m", "b/q by m"], ["a/q by m"], [0, None]),
        (["a/q by m", "b/q by m"], ["x/q by m", "y/q by m"], [None, None]),
        (["a/q by m", "r by m"], ["x/q by m", "r by m"], [0, 1]),
        (["q by m", "q by n"], ["q by n", "q by m"], [1, 0]),
        (["q by m", "q by n"], ["q by old"], [0, 0]),
        (["q by o"], ["q by m", "q by n"], [None]),
        (["q by m"], ["q by n", "q by m"], [1]),
        (["q by new:run m"], ["q by old:run m", "q by old:run n"], [0]),
        (["q by a:run m", "q by b:run m"], ["q by b:run m", "q by a:run m"], [1, 0]),
        (["q by m", "r by m"], ["q by m"], [0, None]),
    ],
)
def test_a_suite_has_the_one_that_is_plainly_its_own(
    here: list[str], there: list[str], expected: list[int | None]
):
    infos, others = [each.info for each in suites(*here)], suites(*there)
    found = counterparts(infos, others)
    assert found == [None if at is None else others[at] for at in expected]


def test_what_is_not_clear_is_refused_by_name():
    report, [current] = result_of(*suites("q by m", "q by n")), suites("q by o")
    with pytest.raises(NoCounterpart) as raised:
        baselines_of(report, [current.info], source="base.json")
    assert str(raised.value) == "it has no evaluation of q by o, only q by m, q by n"
