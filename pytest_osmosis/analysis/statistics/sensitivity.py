"""How small a difference a design shows: rows measured twice, judged by the interval of `paired`.

Knows neither reports nor gates. None stands for "undefined".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import student_t
from .estimators import mean
from .paired import Padded, added_rows

if TYPE_CHECKING:
    from .estimators import Floats

POWER = 0.8
"""The chance with which the difference is shown."""

LEAST_AWAY = 10
"""With fewer rows that differ otherwise than most do, the spread is not known well enough."""

_STEPS = 200


def smallest_fall(
    then: Floats, now: Floats, *, margin: float, confidence: float, span: float = 1.0
) -> float | None:
    """Return the smallest true fall that puts the whole interval below -`margin`, 4 times of 5.

    `then` and `now` have one value a row; with a span of 1 they are shares. The fall is
    `margin + (t(1 - a/2) + t(0.8)) s`, s being the standard error of the paired difference and t
    that of N - 1 degrees of freedom: Cohen 1988, Statistical Power Analysis, 2.3, for pairs. Since
    `paired` adds rows without a difference, it is taken (N + A) / N times.

    A share that falls has another spread than it had, and the s of the fall decides (Connor 1987,
    Biometrics 43:207). It is computed as if every row fell by the same part d / m of itself, m
    being the mean of all values, and M the mean product of a row's two: half of the variance of the
    differences is the noise of the session that fell, changed in the ratio of `r m - r^2 M` to
    `m - M` with r = 1 - d / m; and the falls of the rows differ by `(d / m)^2 (M - m^2)`. With more
    noise, as many more rows move, and fewer are added.

    None where fewer than `LEAST_AWAY` rows move, or where nothing can fall so far.
    """
    padded = Padded.of((now - then) / span)
    if padded.away < LEAST_AWAY:
        return None
    t = student_t.two_sided(confidence, padded.freedom)
    t += student_t.quantile(POWER, padded.freedom)
    rows = padded.rows
    if span != 1.0:
        scale = (rows + added_rows(padded.away)) / rows
        return _positive((margin / span + t * padded.error) * scale * span)
    centre, product = (mean(then) + mean(now)) / 2.0, mean(then * now)
    variance = float((now - then).var())
    fall = 0.0
    for _ in range(_STEPS):
        part = fall / centre
        left = 1.0 - part
        noise = (1.0 + (left * centre - left * left * product) / (centre - product)) / 2.0
        added = added_rows(min(rows - 1.0, padded.away * max(1.0, noise)))
        whole = rows + added
        spread = variance * noise + part * part * max(0.0, product - centre * centre)
        square = ((spread + fall * fall) * rows + added / 2.0) / whole
        error = ((square - (fall * rows / whole) ** 2) / whole) ** 0.5
        found = (margin + t * error) * whole / rows
        if found > centre:
            return None
        if abs(found - fall) < 1e-6:
            return _positive(found)
        fall = max(0.0, found)
    return None


def _positive(fall: float) -> float | None:
    return fall if fall > 0.0 else None
