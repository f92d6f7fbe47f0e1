"""The HTML report: one page that loads nothing and in which every text is only text."""

from __future__ import annotations

from html.parser import HTMLParser

from pytest_osmosis.reports import html
from pytest_osmosis.results import RunId
from tests.made_results import NASTY, result_of, suite_of


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.elements)


def page_of(*args, **kwargs) -> Page:
    return Page(html.render(*args, **kwargs))


def test_it_loads_nothing_from_anywhere():
    page = page_of(result_of(suite_of([[0.0, 1.0]])))
    names = {name for _, attributes in page.elements for name in attributes}
    assert not names & {"src", "href", "srcset", "action", "data", "poster"}
    policy = next(a["content"] for tag, a in page.elements if "http-equiv" in a)
    assert policy is not None
    assert "default-src 'none'" in policy


def test_text_of_models_is_only_text():
    usual = page_of(result_of(suite_of([[0.0]])), {RunId("data.jsonl", 0, 0): "conversation"})
    nasty = page_of(
        result_of(suite_of([[0.0]], answer=NASTY, name=NASTY)), {RunId(NASTY, 0, 0): NASTY}
    )
    assert [tag for tag, _ in nasty.elements] == [tag for tag, _ in usual.elements]
    assert nasty.text.count("<script>alert(1)</script>") >= 2
    assert not any(name.startswith("on") for _, a in nasty.elements for name in a)


def test_runs_that_did_not_pass_come_first_with_their_conversation():
    result = result_of(suite_of([[1.0], [0.0], ["503 from there"]]))
    sections = {
        RunId("data.jsonl", 1, 0): "what was said",
        RunId("data.jsonl", 0, 0): "never shown",
    }
    page = page_of(result, sections)
    order = [page.text.index(name) for name in ("row-2", "row-1", "row-0")]
    assert order == sorted(order)
    assert page.count("details") == 1
    assert "what was said" in page.text
    assert "never shown" not in page.text
    assert "503 from there" in page.text


def test_a_page_has_its_limits_and_says_so(monkeypatch):
    monkeypatch.setattr(html, "RUNS_SHOWN", 3)
    monkeypatch.setattr(html, "SECTIONS_SHOWN", 1)
    result = result_of(suite_of([[0.0]] * 5))
    page = page_of(result, {RunId("data.jsonl", row, 0): "x" * 50_000 for row in range(5)})
    assert "2 more runs are in the JSON report" in page.text
    assert page.count("details") == 1
    assert "characters left out" in page.text
    assert len(page.text) < 20_000


def test_it_says_where_it_ran_and_survives_half_characters(tmp_path):
    environment = {
        "command_line": "pytest --osmosis-n 5", "versions": {"python": "3.11"},
        "platform": "Linux", "git": {"commit": "ab12", "dirty": True},
    }  # fmt: skip
    result = result_of(suite_of([[0.0]], answer="\ud800 \x1b[31m"), environment=environment)
    html.write(result, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert "pytest --osmosis-n 5" in page.text
    assert "ab12 and changes" in page.text
    assert "\x1b" not in page.text
