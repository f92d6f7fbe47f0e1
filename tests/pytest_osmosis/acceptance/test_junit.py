"""The JUnit file: a run's figures as properties of its case, the evaluation's as the suite's."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import pytest

from tests.support.endpoints import completion, failure_reply
from tests.support.modes import each_mode
from tests.support.project import AGENT, Project


def properties(element: Element) -> list[tuple[str, str]]:
    """Names and values, in their order."""
    return [(p.attrib["name"], p.attrib["value"]) for p in element.findall("./properties/property")]


def cases(junit: Element) -> dict[str, Element]:
    """The test cases by name."""
    return {case.attrib["name"]: case for case in junit.iter("testcase")}


def test_each_case_and_the_suite_have_their_figures(project: Project):
    project.endpoint.answers = lambda ask: (
        failure_reply("no") if ask.row == "refused" else completion(ask.row)
    )
    project.rows("a", {"user_prompt": "b", "ground_truth": "x"}, "raise", "refused")
    session = project.run(
        *("--junitxml=out.xml", "--eval-fn=rewards:length", "--pass-threshold=0.1"),
        n="2",
    )
    [suite] = session.junit.iter("testsuite")
    figures = session.report["summary"]["eval_fns"]
    written = dict(properties(suite))
    assert written["osmosis_model"] == "m"
    assert written["osmosis_runs"] == "8"
    for name, summary in figures.items():
        for figure in ("mean", "std", "pass_at_1", "pass_at_2", "pass_hat_1", "pass_hat_2"):
            assert float(written[f"osmosis_{figure}[{name}]"]) == summary[figure]
        assert written[f"osmosis_missing[{name}]"] == str(summary["missing"]) == "2"
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "8", "failures": "4", "errors": "2", "skipped": "0"}

    found = cases(session.junit)
    names = [f"row-{row}[run-{run}]" for row in range(4) for run in range(2)]
    assert sorted(found) == names
    runs = dict(zip(names, session.runs, strict=True))
    for name, case in found.items():
        listed = properties(case)
        assert len(dict(listed)) == len(listed), "a property is there twice"
        of_case = dict(listed)
        run = runs[name]
        assert name == f"row-{of_case['osmosis_row_index']}[run-{of_case['osmosis_run_index']}]"
        assert float(of_case["osmosis_duration_ms"]) == pytest.approx(run["duration_ms"], abs=0.001)
        assert int(of_case["osmosis_tokens"]) == run["tokens"]
        scores = {
            key.removeprefix("osmosis_score[").removesuffix("]"): float(value)
            for key, value in of_case.items()
            if key.startswith("osmosis_score[")
        }
        assert scores == run["scores"]
        assert of_case.get("osmosis_error_type") == run["error_type"]
        assert float(case.attrib["time"]) == pytest.approx(run["duration_ms"] / 1000, abs=0.002)
        assert case.attrib["classname"] == "data.jsonl"
    right, wrong, refused = (found[f"row-{row}[run-0]"] for row in (0, 1, 3))
    assert [child.tag for child in right] == ["properties"]
    failure, error = wrong.find("failure"), refused.find("error")
    assert failure is not None and error is not None
    assert failure.attrib["message"] == "rewards:exact scored 0, below the threshold 0.1"
    assert "  ground truth  x" in (failure.text or "").splitlines()
    assert f'503 from {project.endpoint.netloc} ("no")' in error.attrib["message"]


def test_so_it_is_for_a_marked_test(project: Project):
    project.write("agent.py", AGENT.replace("answer = ", "print(wish)\n        answer = "))
    project.rows("said by the rollout")
    project.write(
        "test_it.py",
        """
import pytest


@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
def test_answer(rollout):
    print("said by the test")
""",
    )
    session = project.run(
        *("--junitxml=out.xml", "-ojunit_logging=all"), agent=None, data=None, eval_fn=None
    )
    [case] = cases(session.junit).values()
    printed = case.findtext("system-out") or ""
    assert printed.count("said by the rollout") == 1
    assert printed.count("said by the test") == 1


def test_every_family_is_written_without_a_warning(project: Project):
    project.rows("a")
    session = project.run("--junitxml=out.xml", "-ojunit_family=legacy", "-Werror")
    assert session.outcomes == {"passed": 1}
    [suite] = session.junit.iter("testsuite")
    assert "osmosis_model" in dict(properties(suite))


@pytest.mark.slow
@each_mode
def test_summary_and_reports_have_a_table_by_the_column(project: Project, workers: int):
    project.write("pytest.ini", "[pytest]\nosmosis_by = Level\n")
    levels = [("a", 2), ("b", 1), ("wrong", 2)]
    project.rows(
        *({"user_prompt": row, "ground_truth": row[:1], "level": level} for row, level in levels)
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
