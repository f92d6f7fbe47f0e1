"""The HTML report as people use it."""

from __future__ import annotations

from pytest_osmosis.reports import html
from tests.made_results import NASTY, result_of, suite_of


def test_text_of_models_does_nothing_and_the_page_loads_nothing(tmp_path, open_page, violations):
    path = tmp_path / "report.html"
    html.write(result_of(suite_of([[1.0, 0.0], [0.0, 0.0]], answer=NASTY)), path)
    page = open_page(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert "<script>alert(1)</script>" in page.inner_text("body")
    assert violations(page) == []
