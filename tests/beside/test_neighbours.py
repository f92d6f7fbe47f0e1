"""Other pytest plugins, all loaded at once, one used at a time: theirs works and so does ours."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest

from tests.support.project import Project, Session

NEIGHBOURS = {
    "pytest-asyncio": "asyncio",
    "pytest-base-url": "base-url",
    "pytest-cov": "cov",
    "pytest-html": "html",
    "pytest-json-report": "json-report",
    "pytest-randomly": "randomly",
    "pytest-reportlog": "reportlog",
    "pytest-rerunfailures": "rerunfailures",
    "pytest-timeout": "timeout",
}
IN_ORDER = ("-p", "no:randomly")
TIMES = ("duration_ms", "total_duration_ms", "started_at", "llm_ms", "environment")
ONE_AND_MANY = pytest.mark.parametrize(
    "workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)]
)


def run(project: Project, *args: str, **replaced: str | None) -> Session:
    return project.apart(*project.options(*args, **replaced))


def scores(session: Session) -> list[tuple[int, int, dict[str, float], str]]:
    """What the report says of each run."""
    return [
        (row["row_index"], run["run_index"], run["scores"], run["outcome"])
        for row in session.report["rows"]
        for run in row["runs"]
    ]


RIGHT = [
    (0, 0, {"rewards:exact": 1.0}, "passed"),
    (1, 0, {"rewards:exact": 0.0}, "below"),
    (2, 0, {"rewards:exact": 1.0}, "passed"),
]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_with_all_of_them_the_evaluation_is_what_it_is_alone(project: Project, workers: str):
    session = run(project, workers, "-Werror")
    plugins = next(line for line in session.lines if line.startswith("plugins: "))
    for distribution, name in NEIGHBOURS.items():
        assert f"{name}-{version(distribution)}" in plugins
    assert session.outcomes == {"passed": 2, "failed": 1}
    assert session.ret == 1
    assert scores(session) == RIGHT
    assert project.endpoint.requests == 3


class TestRerunfailures:
    @pytest.mark.fault("pytest-rerunfailures")
    @ONE_AND_MANY
    def test_a_run_is_not_paid_for_twice(self, project: Project, workers: str):
        session = run(project, workers, "--reruns=2")
        assert session.outcomes == {"passed": 2, "failed": 1}
        assert scores(session) == RIGHT
        assert project.endpoint.requests == 3

    def test_a_marked_test_is_rerun_on_the_rollout_that_there_is(self, project: Project):
        project.write(
            "test_it.py",
            """
import pytest

tries = []


@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl", limit=1)
def test_flaky(rollout):
    tries.append(rollout.solution_str)
    assert tries == ["alpha"] * 3
""",
        )
        session = run(project, "--reruns=2", "-n0", agent=None, data=None, eval_fn=None)
        assert session.outcomes == {"passed": 1, "rerun": 2}
        assert project.endpoint.requests == 1
        [only] = session.runs
        assert (only["passed"], only["scores"]) == (True, {"test": 1.0})

    def test_ordinary_tests_are_rerun(self, project: Project):
        project.write(
            "test_it.py", "tries = []\ndef test_it():\n    tries.append(1)\n    assert tries[1:]\n"
        )
        session = run(project, "--reruns=1", "-n0", "test_it.py", "data.jsonl")
        assert session.outcomes == {"passed": 3, "failed": 1, "rerun": 1}


class TestTimeout:
    def test_a_limit_that_is_kept_changes_nothing(self, project: Project):
        session = run(project, "--timeout=60", "-n0")
        assert scores(session) == RIGHT

    @pytest.mark.fault("pytest-timeout")
    @ONE_AND_MANY
    def test_a_run_beyond_the_limit_has_failed_and_the_others_go_on(
        self, project: Project, workers: str
    ):
        project.rows("alpha", "sleep", "gamma")
        project.write(
            "conftest.py",
            "import pytest\n\n"
            "def pytest_collection_modifyitems(items):\n"
            "    [item] = [each for each in items if each.name.startswith('row-1')]\n"
            "    item.add_marker(pytest.mark.timeout(1))\n",
        )
        session = run(project, "--timeout=600", "--timeout-method=signal", workers)
        assert session.ret == 1
        assert [outcome for *_, outcome in scores(session)] == ["passed", "timeout", "passed"]
        assert "Timeout" in session.out


@pytest.mark.fault("JUnit, pytest-html, GitHub annotations")
@ONE_AND_MANY
def test_html_shows_every_run_and_its_message(project: Project, workers: str):
    session = run(project, "--html=out.html", "--self-contained-html", workers)
    assert session.outcomes == {"passed": 2, "failed": 1}
    page = (project.path / "out.html").read_text()
    for row in range(3):
        assert f"data.jsonl::row-{row}[run-0]" in page
    assert "below the threshold 1" in page


@ONE_AND_MANY
def test_json_report_has_the_outcomes_and_properties(project: Project, workers: str):
    run(project, "--json-report", "--json-report-file=their.json", workers)
    theirs: dict[str, Any] = json.loads((project.path / "their.json").read_text())
    assert theirs["summary"]["passed"] == 2
    assert theirs["summary"]["failed"] == 1
    tests = {test["nodeid"]: test for test in theirs["tests"]}
    assert len(tests) == 3
    report = tests["data.jsonl::row-1[run-0]"]
    assert report["outcome"] == "failed"
    properties = {name: value for pair in report["user_properties"] for name, value in pair.items()}
    assert properties["osmosis_row_index"] == 1
    assert properties["osmosis_score[rewards:exact]"] == 0.0


@ONE_AND_MANY
def test_a_log_of_reports_has_every_result_and_message(project: Project, workers: str):
    session = run(project, "--report-log=log.jsonl", workers)
    assert session.outcomes == {"passed": 2, "failed": 1}
    logged = [json.loads(line) for line in (project.path / "log.jsonl").read_text().splitlines()]
    runs = [(json.loads(each["osmosis"]), each) for each in logged if "osmosis" in each]
    assert [run["scores"] for run, _ in sorted(runs, key=lambda run: run[0]["row_index"])] == [
        scores for _, _, scores, _ in RIGHT
    ]
    [failed] = [each for run, each in runs if not run.get("passed")]
    assert "below the threshold 1" in json.dumps(failed["longrepr"])


class TestRandomly:
    @pytest.mark.fault("pytest-randomly")
    def test_items_are_shuffled_and_the_report_is_not(self, project: Project):
        project.rows(*"abcdefgh")
        orders, reports = [], []
        for seed in (1, 2):
            session = run(project, f"--randomly-seed={seed}", "-n0")
            orders.append([ask.row for ask in project.endpoint.seen[-8:]])
            reports.append(without_times(session.report))
        assert orders[0] != orders[1]
        assert reports[0] == reports[1]

    def test_so_it_is_in_many_processes(self, project: Project):
        assert scores(run(project, "--randomly-seed=1", "-n2")) == RIGHT


class TestAsyncio:
    ASYNC = "async def test_async():\n    import asyncio\n    await asyncio.sleep(0)\n"

    @pytest.mark.fault("pytest-asyncio")
    @pytest.mark.parametrize("mode", ["auto", "strict"])
    def test_async_tests_and_runs_do_not_meet(self, project: Project, mode: str):
        marker = "import pytest\n\n\n@pytest.mark.asyncio\n"
        project.write("test_it.py", marker + self.ASYNC)
        session = run(
            project, f"--asyncio-mode={mode}", "-n0", "-Werror", "test_it.py", "data.jsonl"
        )
        assert session.outcomes == {"passed": 3, "failed": 1}

    def test_a_marked_test_may_be_async_where_they_are(self, project: Project):
        project.write(
            "test_it.py",
            """
import asyncio
import pytest


@pytest.mark.asyncio
@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl", n=2)
async def test_answer(rollout):
    await asyncio.sleep(0)
    assert rollout.solution_str == rollout.ground_truth
""",
        )
        session = run(project, "-n0", "-Werror", agent=None, data=None, eval_fn=None)
        assert session.outcomes == {"passed": 4, "failed": 2}


@ONE_AND_MANY
def test_cov_sees_the_agent_and_the_eval_functions(project: Project, workers: str):
    session = run(project, "--cov=agent", "--cov=rewards", "--cov-report=json:cov.json", workers)
    assert scores(session) == RIGHT
    files = json.loads((project.path / "cov.json").read_text())["files"]
    lines = (project.path / "agent.py").read_text().splitlines()
    asked = next(number for number, line in enumerate(lines, 1) if "answer = await" in line)
    assert asked in files["agent.py"]["executed_lines"]
    assert files["rewards.py"]["executed_lines"]


def test_base_url_keeps_its_option_and_ours_is_not_it(project: Project):
    project.write(
        "test_it.py", 'def test_url(base_url):\n    assert base_url == "http://their.example"\n'
    )
    session = run(
        project, "--base-url=http://their.example", "-n0", *IN_ORDER, "test_it.py", "data.jsonl"
    )
    assert session.outcomes == {"passed": 3, "failed": 1}
    assert session.report["config"]["endpoint"] == project.endpoint.netloc


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value
