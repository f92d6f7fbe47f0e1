"""Cohen's kappa and its interval, against published values."""

from __future__ import annotations

import pytest

from pytest_osmosis.analysis.statistics.kappa import cohens_kappa

PUBLISHED = [
    # Stata's kapci, Statalist 2009-12, message 320
    ([[1395, 118], [261, 158]], 0.3411969, 0.2896668, 0.3927271, 7),
    # SAS/STAT, PROC FREQ, the example of two dermatologists
    (
        [[10, 4, 1, 0], [5, 10, 12, 2], [2, 4, 12, 5], [0, 2, 6, 13]],
        *(0.3449, 0.2030, 0.4868, 4),
    ),
]


@pytest.mark.parametrize(("table", "kappa", "low", "high", "digits"), PUBLISHED)
def test_kappa_and_its_interval_are_the_published_ones(table, kappa, low, high, digits):
    found = cohens_kappa(table)
    assert found is not None and found.interval is not None
    values = (found.kappa, found.interval.low, found.interval.high)
    assert [round(value, digits) for value in values] == [kappa, low, high]
    turned = cohens_kappa([list(column) for column in zip(*table, strict=True)])
    assert turned is not None and turned.kappa == pytest.approx(found.kappa)


def test_what_is_not_known_has_no_figure():
    assert cohens_kappa([[0, 0], [0, 0]]) is None
    alike = cohens_kappa([[5, 0], [0, 0]])
    assert alike is not None and (alike.observed, alike.kappa, alike.interval) == (1.0, None, None)
    whole = cohens_kappa([[5, 0], [0, 4]])
    assert whole is not None and (whole.kappa, whole.interval) == (1.0, None)
    opposite = cohens_kappa([[0, 5], [5, 0]])
    assert opposite is not None and opposite.kappa == -1.0
