"""Rows that belong together by a column: in intervals, gates, comparisons and reports."""

from __future__ import annotations

import json
from collections.abc import Collection

import pytest

from tests.support.command import Osmosis
from tests.support.modes import each_mode
from tests.support.project import Project, Session

AGENT = """
import json
from pathlib import Path

wrong = json.loads(Path("wrong.json").read_text())


def agent(question):
    document, number = question.split()
    return "no" if int(number) < wrong.get(document, 0) else question
"""
BY_DOCUMENT = "--osmosis-cluster=meta.doc"
FUNCTION = "rewards:exact"
KEPT = "agent.agent-data-its-own-model"


@pytest.fixture
def osmosis(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Osmosis:
    return Osmosis(monkeypatch, capfd)


@pytest.fixture
def documents(project: Project) -> Project:
    """A project whose agent is wrong in the first rows of some documents."""
    project.write("agent.py", AGENT)
    return project


def rows(project: Project, documents: int, each: int) -> None:
    project.rows(
        *(
            {"user_prompt": f"{name} {at}", "ground_truth": f"{name} {at}", "meta": {"doc": name}}
            for name in map("d{}".format, range(documents))
            for at in range(each)
        )
    )


def evaluate(project: Project, wrong: dict[str, int], *more: str, **replaced: str) -> Session:
    project.write("wrong.json", json.dumps(wrong))
    usual = {"agent": "agent:agent", "model": None, "base_url": None}
    return project.run(*more, **{**usual, **replaced})


def limits(session: Session) -> tuple[float, float]:
    found = session.report["summary"]["eval_fns"][FUNCTION]["intervals"]["mean"]
    return found["low"], found["high"]


@each_mode
def test_four_of_six_documents_say_little_of_all_documents_and_reports_say_so(
    documents: Project, workers: int, osmosis: Osmosis
):
    rows(documents, 6, 20)
    session = evaluate(
        documents, {"d4": 20, "d5": 20}, BY_DOCUMENT, "--osmosis-gate=mean >= 0.5",
        "--osmosis-confidence=0.95", "--osmosis-markdown=out.md", workers=workers,
    )  # fmt: skip
    report = session.report
    assert session.ret == 8
    assert limits(session) == pytest.approx((0.1247, 1.0), abs=1e-4)
    assert (report["summary"]["clusters"], report["gates"][0]["clusters"]) == (6, 6)
    assert report["config"]["settings"]["cluster"] == "meta.doc"
    assert [row["cluster"] for row in report["rows"][::20]] == ["d0", "d1", "d2", "d3", "d4", "d5"]
    assert "6 clusters by meta.doc: intervals are by cluster" in session.lines
    assert "6 clusters by meta.doc" in (documents.path / "out.md").read_text()
    assert "0.125 .. 1.000" in osmosis("eval", "runs", "show", KEPT)[1]


def test_without_the_option_a_hint_names_the_column_once(documents: Project):
    rows(documents, 6, 5)
    lines = (documents.path / "data.jsonl").read_text().splitlines()
    flat = [{**json.loads(line), "document": at // 5} for at, line in enumerate(lines)]
    documents.rows(*flat)
    said = " ".join(evaluate(documents, {"d1": 5, "d2": 5}).lines)
    assert said.count("may belong together") == 1
    assert "rows with one 'document' may belong together (6 values): with --osmosis-cluster" in said
    assert "may belong" not in " ".join(evaluate(documents, {}, "--osmosis-cluster=document").lines)
    assert "may belong" not in " ".join(evaluate(documents, {}, "--osmosis-limit=19").lines)


def test_an_unchanged_agent_passes_a_worse_one_fails_and_what_regressed_is_the_document(
    documents: Project,
):
    rows(documents, 14, 4)
    before = {f"d{at}": at % 3 for at in range(14)}
    evaluate(documents, before, BY_DOCUMENT, output="base.json", n="3")
    gate = ("--osmosis-baseline=base.json", "--osmosis-gate=pass@1 - baseline >= 0", BY_DOCUMENT)

    def compared(wrong: dict[str, int]) -> Session:
        return evaluate(documents, wrong, *gate, n="3")

    worse = compared({name: wrong + 2 for name, wrong in before.items()})
    assert (worse.ret, worse.report["gates"][0]["outcome"]) == (1, "failed")
    one = compared({**before, "d3": 4})
    [found] = one.report["gates"]
    assert (one.ret, found["outcome"], found["clusters"]) == (0, "passed", 14)
    comparison = one.report["baseline"]["eval_fns"][FUNCTION]
    [cluster] = comparison["clusters"]
    assert (cluster["name"], cluster["verdict"]) == ("d3", "regressed")
    assert {each["verdict"] for each in comparison["changes"]} == {"regressed"}
    assert "    regressed  d3  12/12 → 0/12, p of its runs < 0.001" in one.lines


def test_a_baseline_by_another_column_is_said_and_four_documents_have_no_interval(
    documents: Project,
):
    rows(documents, 4, 5)
    evaluate(documents, {"d1": 2}, output="base.json")
    session = evaluate(
        documents, {"d1": 5}, BY_DOCUMENT, "--osmosis-baseline=base.json",
        "--osmosis-gate=mean - baseline >= 0",
    )  # fmt: skip
    report = session.report
    said = " ".join(" ".join(session.lines).split())
    assert (session.ret, report["gates"][0]["outcome"]) == (0, "passed")
    assert report["gates"][0]["detail"] == "no fall shown: 20 rows in 4 clusters can show none"
    assert limits(session) == (None, None)
    assert "4 clusters by meta.doc: fewer than 5 have no interval" in said
    assert "rows belong together by 'meta.doc'; in the baseline they are taken as" in said


MISTAKES: list[tuple[Collection[object], str]] = [
    (["a", "b", None, "", "c"], "2 rows without a value (rows 2, 3): give each one, or leave them"),
    (["a", ["b"]], "row 1 has a list there; rows belong together by a text or a number"),
    ([{"x": 1}], "row 0 has an object there"),
    ([1, 2.0, "1"], "'1' is a number in row 0 and text in row 2: write one and the same value"),
    ([True, 1], ""),
    ([1, 1.0, 2], ""),
]


@pytest.mark.parametrize(("values", "mistake"), MISTAKES)
def test_values_that_name_no_cluster_are_refused_with_their_rows(values, mistake):
    from pytest_osmosis.features.clusters.columns import WrongColumn, clusters_of

    records = [{"doc": value} for value in values]
    if mistake:
        with pytest.raises(WrongColumn) as refused:
            clusters_of("doc", range(len(records)), records)
        assert mistake in str(refused.value)
    else:
        assert sum(map(len, clusters_of("doc", range(len(records)), records).values())) == len(
            records
        )


def test_a_marked_function_without_the_column_says_so_where_it_is_collected(documents: Project):
    rows(documents, 1, 2)
    documents.write("wrong.json", "{}")
    documents.write(
        "test_it.py",
        "import pytest\n\n\n"
        "@pytest.mark.osmosis(agent='agent:agent', data='data.jsonl')\n"
        "def test_it(rollout):\n    pass\n",
    )
    session = documents.plain("test_it.py", "-n0", "--osmosis-cluster=docs")
    assert session.ret == 2
    assert "test_it.py::test_it: no row has such a column (columns: system_prompt" in session.out
