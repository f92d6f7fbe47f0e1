"""`osmosis eval plan`: what designs can show, held against simulated sessions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.analysis.statistics.designs import Rates, cheapest
from pytest_osmosis.analysis.statistics.paired import paired
from pytest_osmosis.reports import json_writer
from pytest_osmosis.run_result import CLUSTER
from tests.support.command import Osmosis
from tests.support.made_results import result_of, suite_of

PAIRS = 400


def chances(draw: np.random.Generator, rate: float, spread: float, size: Any) -> Any:
    scale = rate * (1.0 - rate) / spread**2 - 1.0
    return draw.beta(rate * scale, (1.0 - rate) * scale, size)


@pytest.mark.parametrize(
    ("rates", "rows", "n"),
    [
        (Rates(rate=0.8, spread=0.2), 100, 3),
        (Rates(rate=0.6, spread=0.3), 200, 1),
        (Rates(rate=0.7, spread=0.2, size=5.0, between=0.2), 200, 2),
    ],
)
def test_the_fall_that_a_plan_names_is_found_four_times_of_five(rates: Rates, rows: int, n: int):
    draw, number = np.random.default_rng(3), round(rows / rates.size)
    fall = rates.design(rows, n).fall(0.0, 0.95)
    assert fall is not None
    clusters = np.arange(rows) // round(rates.size)

    def session(found: Any) -> Any:
        return draw.binomial(n, found) / n

    shown = 0
    for _ in range(PAIRS):
        of_rows = chances(draw, rates.rate, rates.spread, number)[clusters]
        before, after = session(of_rows), session(of_rows * (1.0 - fall / rates.rate))
        interval = paired(after - before, clusters=clusters).interval
        assert interval is not None
        shown += interval.high < 0.0
    assert 0.75 - 0.03 <= shown / PAIRS <= 0.85 + 0.03


def test_the_cheapest_design_shows_the_fall_and_fewer_rows_do_not():
    design = Rates(rate=0.8, spread=0.2).design(100, 3)
    found = cheapest(design, 3, fall=0.05, margin=0.0, confidence=0.95, ns=[3])
    assert found is not None
    again = Rates(rate=0.8, spread=0.2).design(found.rows, 3).fall(0.0, 0.95)
    fewer = Rates(rate=0.8, spread=0.2).design(found.rows * 9 // 10, 3).fall(0.0, 0.95)
    assert again is not None
    assert fewer is not None
    assert again <= 0.05 < fewer


def write(path: Path, *, column: str | None) -> str:
    """A report of 60 clusters of 5 rows x 4 runs, whose clusters have chances of deviation 0.2."""
    draw = np.random.default_rng(8)
    of_rows = np.repeat(chances(draw, 0.7, 0.2, 60), 5)
    suite = suite_of([[float(draw.random() < chance) for _ in range(4)] for chance in of_rows])
    info = suite.info
    if column:
        rows = {f"d{at}": list(range(5 * at, 5 * at + 5)) for at in range(60)}
        info = replace(info, clusters=rows, settings={**info.settings, CLUSTER: column})
    whole = aggregate(info, suite.runs, selected=suite.selected, confidence=0.95)
    json_writer.write(result_of(whole), path)
    return str(path)


def test_a_report_says_how_rows_and_clusters_differ(osmosis: Osmosis, tmp_path: Path):
    report = write(tmp_path / "a.json", column="document")
    words = ("eval", "plan", report, "--rows", "300", "--n", "4")
    status, out, _ = osmosis(*words, "--cluster", "document", "--cost", "0.01", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["size"], found["designs"][0]["cost_usd"]) == (5.0, pytest.approx(12.0))
    assert found["rate"] == pytest.approx(0.7, abs=0.06)
    assert found["spread"] == pytest.approx(0.2, abs=0.04)
    assert found["between"] == pytest.approx(0.2, abs=0.04)
    saved = json.loads(Path(report).read_text())["summary"]["eval_fns"]
    [interval] = [each["intervals"]["pass_at_1"] for each in saved.values()]
    half = (interval["high"] - interval["low"]) / 2
    assert found["designs"][0]["half_width"] == pytest.approx(half, rel=0.1)
    assert [each["rows"] for each in found["designs"]] == [300, 600, 1200, 300, 300]
    assert found["cheapest"]["fall"] <= 0.05
    text = osmosis(*words)[1]
    assert "cheapest design that shows a fall of 0.05: " in text
    assert "twice the rows show smaller falls than twice the runs" in text


MISTAKES = [
    (("--rows", "20"), "name a report, or give --rate: one of the two"),
    (("a.json", "--rate", "0.5", "--rows", "20"), "name a report, or give --rate"),
    (
        ("--rate", "0.5", "--rows", "20", "--cluster", "x"),
        "how clusters differ is known of a report alone",
    ),
    (("--rate", "0.9", "--spread", "0.4", "--rows", "20"), "at --rate 0.9 at most 0.30"),
    (("--rate", "nan", "--rows", "20"), "'nan' is not a valid number"),
    (("--rate", "0.5", "--rows", "20", "--cost", "inf"), "'inf' is not a valid number"),
    (("a.json", "--rows", "20", "--cluster", "topic"), "not belong together by 'topic', but by no"),
    (("a.json", "--rows", "20", "--eval-fn", "other"), "--eval-fn is one of "),
]


@pytest.mark.parametrize(("words", "mistake"), MISTAKES)
def test_mistakes_are_one_sentence(
    osmosis: Osmosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
    mistake: str,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.json", column=None)
    status, _, err = osmosis("eval", "plan", *words)
    assert status == 2
    assert mistake in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a.json", "--rows", "25"), "fewer than 10 clusters"),
        (("--rate", "0.93", "--spread", "0.07", "--rows", "20"), "fewer than 10 rows would differ"),
        (("--rate", "0.01", "--rows", "700"), "even a fall to 0 would not be shown"),
        (("--rate", "0.8", "--rows", "200"), None),
    ],
)
def test_a_design_that_names_no_fall_says_why(
    osmosis: Osmosis, tmp_path: Path, words: tuple[str, ...], reason: str | None
):
    report = write(tmp_path / "a.json", column="document")
    words = tuple(report if word == "a.json" else word for word in words)
    text = osmosis("eval", "plan", *words)[1]
    said = [line for line in text.splitlines() if line.startswith("-: ")]
    assert said == ([f"-: no fall is named: {reason}"] if reason else [])


def test_without_a_spread_the_plan_says_what_it_takes_rows_for(osmosis: Osmosis):
    text = osmosis("eval", "plan", "--rate", "0.8", "--rows", "50")[1]
    assert "as if all rows had one chance" in text
