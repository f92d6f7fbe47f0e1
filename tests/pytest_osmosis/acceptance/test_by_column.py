"""`--osmosis-by`: a session's figures for each value of a column of its dataset."""

from __future__ import annotations

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project

KEY = "sk-a-key-that-nobody-may-see"


@pytest.mark.slow
@each_mode
def test_summary_and_reports_have_a_table_by_the_column(
    project: Project, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("pytest.ini", "[pytest]\nosmosis_by = Level\n")
    told = [("a", 2, KEY), ("b", 1, "x"), ("wrong", 2, "x")]
    project.rows(
        *(
            {
                "user_prompt": row,
                "ground_truth": row[:1],
                "level": level,
                "secret": secret,
                "system_prompt": f"Answer {secret}",
            }
            for row, level, secret in told
        )
    )
    reports = ("--osmosis-markdown=out.md", "--osmosis-html=out.html")
    session = project.run(*reports, n="2", workers=workers)
    [found] = session.report["by"]
    assert found["column"] == "level"
    figures = {
        value["value"]: (value["row_indices"], value["eval_fns"]["rewards:exact"]["pass_at_1"])
        for value in found["values"]
    }
    assert figures == {"1": ([1], 1.0), "2": ([0, 2], 0.5)}
    lines = session.section("osmosis summary")
    header, one, two = lines[lines.index("by level") + 1 :][:3]
    assert header.split()[:3] == ["level", "rows", "mean"]
    assert (one.split()[:3], two.split()[:3]) == (["1", "1", "1.000"], ["2", "2", "0.500"])
    assert "#### By level" in (project.path / "out.md").read_text()
    assert "<h4>by level</h4>" in (project.path / "out.html").read_text()
    if not workers:
        both = ("--osmosis-by=secret", "--osmosis-by=system_prompt")
        session = project.run(*reports, *both, "--osmosis-fresh")
        for found in session.report["by"]:
            assert [value["row_indices"] for value in found["values"]] == [[0], [1, 2]]


def test_a_column_that_is_not_there_is_a_usage_error(project: Project) -> None:
    project.rows({"user_prompt": "a", "level": 1})
    session = project.run("--osmosis-by=levl")
    assert session.ret == 4
    assert session.mistake == (
        "--osmosis-by 'levl': data.jsonl: the data have no column 'levl', "
        "only ground_truth, level, system_prompt, user_prompt; did you mean 'level'?"
    )
    assert project.endpoint.connections == 0
