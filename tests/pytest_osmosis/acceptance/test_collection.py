"""Rows and runs as items: their node ids, what selects them, and the plan."""

from __future__ import annotations

import json

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project, Session


@pytest.fixture
def three(project: Project) -> Project:
    """A project of three rows; the second one fails."""
    project.rows("alpha", {"user_prompt": "beta", "ground_truth": "B"}, "gamma")
    return project


def chosen(session: Session) -> list[tuple[int, int]]:
    """Row and run of each run in the report."""
    rows = session.report["rows"]
    return [(row["row_index"], run["run_index"]) for row in rows for run in row["runs"]]


@pytest.mark.parametrize("folder", ["[b]", "a::b"])
def test_a_folder_may_have_the_signs_of_node_ids(
    three: Project, monkeypatch: pytest.MonkeyPatch, folder: str
):
    inside = three.path / folder
    inside.mkdir()
    for name in ("data.jsonl", "agent.py", "rewards.py"):
        (three.path / name).rename(inside / name)
    monkeypatch.chdir(inside)
    session = three.run("--collect-only", "-q", "--rootdir=.")
    assert session.ret == 0, session.out + session.err
    assert session.lines[:3] == [f"data.jsonl::row-{row}[run-0]" for row in range(3)]


@each_mode
def test_a_run_that_is_collected_twice_is_run_once(three: Project, workers: int):
    three.write(
        "conftest.py", "def pytest_collection_modifyitems(items):\n    items += items[:2]\n"
    )
    session = three.run("--keep-duplicates", "data.jsonl", "data.jsonl", workers=workers)
    assert session.outcomes["passed"] + session.outcomes["failed"] == 3
    assert session.report["summary"]["selected"] == three.endpoint.requests == 3
    assert "were never reported" not in session.out


@pytest.mark.parametrize("option", ["-q", "--junitxml=junit.xml"])
@each_mode
def test_rows_that_a_conftest_marks_are_skipped_or_expected_to_fail(
    three: Project, workers: int, option: str
):
    three.write(
        "conftest.py",
        """
import pytest

MARKS = {"row-0": pytest.mark.skip(reason="known"), "row-1": pytest.mark.xfail}

def pytest_collection_modifyitems(items):
    for item in items:
        for row, mark in MARKS.items():
            if item.name.startswith(row):
                item.add_marker(mark)
""",
    )
    session = three.run(option, workers=workers)
    assert session.ret == 0, session.out
    assert session.outcomes == {"passed": 1, "skipped": 1, "xfailed": 1}
    assert chosen(session) == [(1, 0), (2, 0)]
    assert three.endpoint.requests == 2


@each_mode
def test_a_marked_function_with_several_tests_for_a_run_pays_for_it_once(
    three: Project, workers: int
):
    three.write(
        "test_it.py",
        """
import pytest

@pytest.fixture(params=["one", "two"])
def variant(request): ...

class TestIt:
    @pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
    def test_it(self, rollout, variant): ...
""",
    )
    session = three.run(workers=workers, agent=None, data=None, eval_fn=None)
    assert session.outcomes == {"passed": 6}, session.out
    assert three.endpoint.requests == 3


ASYNC_TEST = """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="data.jsonl")
async def test_it(rollout):
    assert rollout.messages
"""
CALLED = """
import asyncio

def pytest_pyfunc_call(pyfuncitem):
    asyncio.run(pyfuncitem.obj(pyfuncitem.funcargs["rollout"]))
    return True
"""


@each_mode
def test_an_async_test_is_called_where_no_plugin_does(three: Project, workers: int):
    three.write("test_it.py", ASYNC_TEST)
    session = three.run(workers=workers, agent=None, data=None, eval_fn=None)
    assert session.outcomes == {"passed": 3}, session.out


def test_an_async_test_is_run_where_a_plugin_calls_it(three: Project):
    three.write("test_it.py", ASYNC_TEST)
    three.write("conftest.py", CALLED)
    session = three.run(agent=None, data=None, eval_fn=None)
    assert session.outcomes == {"passed": 3}


@pytest.mark.parametrize(
    ("name", "condition"), [("no:skipping", "True"), ("skipping", "False"), ("skipping", "1 / 0")]
)
def test_markers_skip_where_they_say_so(three: Project, name: str, condition: str):
    three.write(
        "conftest.py",
        f"""
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skipif({condition!r}, reason="here"))
""",
    )
    session = three.run("-p", name)
    has_run = condition != "1 / 0"
    assert session.outcomes == ({"passed": 2, "failed": 1} if has_run else {"errors": 3})
    assert three.endpoint.requests == (3 if has_run else 0)


def test_node_ids_do_not_depend_on_where_the_session_starts(
    three: Project, monkeypatch: pytest.MonkeyPatch
):
    three.write("pytest.ini", "[pytest]\n")
    inside = three.path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    session = three.run(
        "--collect-only", "-q", data="../data.jsonl", agent="../agent.py:agent_loop", eval_fn=None
    )
    assert [line.rpartition("/")[2] for line in session.lines if "::" in line] == [
        f"data.jsonl::row-{row}[run-0]" for row in range(3)
    ]


@pytest.mark.fault("`-k`, `--deselect`, a node id")
@pytest.mark.parametrize(
    ("selection", "runs"),
    [
        (["data.jsonl::row-2[run-1]"], [(2, 1)]),
        (["data.jsonl::row-0[run-0]", "data.jsonl::row-2[run-1]"], [(0, 0), (2, 1)]),
        (["-k", "row-2 and run-1"], [(2, 1)]),
        (["--deselect", "data.jsonl::row-1[run-0]"], [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]),
    ],
)
def test_items_are_selected_as_any_other_and_the_rest_is_reported_as_missing(
    three: Project, selection: list[str], runs: list[tuple[int, int]]
):
    session = three.run(*selection, n="2")
    assert chosen(session) == runs
    assert three.endpoint.requests == len(runs)
    summary = session.report["summary"]
    assert (summary["selected"], summary["total"]) == (len(runs), 6)
    assert summary["complete"] is False
    assert f"partial: {len(runs)} of 6 runs selected" in session.lines


@each_mode
def test_a_selection_says_what_it_runs_and_shows_no_suite_that_it_leaves_out(
    three: Project, workers: int | None
):
    three.write("other.jsonl", (three.path / "data.jsonl").read_text())
    more = ["--osmosis-data=other.jsonl", "--osmosis-markdown=o.md"]
    session = three.run("-k", "other.jsonl and row-0", *more, workers=workers, n="2")
    assert "on other.jsonl, a selection of 3 x 2 = 6 rollouts" in session.out
    assert "other.jsonl: 2 of 6 rollouts (3 rows x 2 runs x 1 eval function)" in session.lines
    assert "data.jsonl" not in session.lines
    assert session.report["config"]["name"] == "other.jsonl"
    assert "data.jsonl" not in (three.path / "o.md").read_text().split("Environment")[0]


def test_a_collection_error_shows_no_table_of_runs_that_were_not_begun(three: Project):
    three.write("test_broken.py", "import nothing_of_this_name\n")
    session = three.run("test_broken.py", "data.jsonl", "--osmosis-model=other")
    assert session.ret == 2
    assert session.section("osmosis summary")[0] == "no run had ended"


def test_a_row_with_fewer_than_k_runs_has_no_pass_at_k_and_the_report_says_so(
    three: Project,
):
    session = three.run("--deselect", "data.jsonl::row-0[run-0]", n="3")
    summary = session.report["summary"]
    assert summary["incomplete_rows"] == 1
    figures = summary["eval_fns"]["rewards:exact"]
    assert (figures["pass_at_1"], figures["pass_at_3"]) == (pytest.approx(2 / 3), 1 / 2)
    said = "pass@3 over 2 of 3 rows: the others have too few runs that count"
    assert said in session.lines


def test_the_pass_at_k_of_a_single_run_is_a_dash(three: Project):
    session = three.run("data.jsonl::row-0[run-1]", "--osmosis-html", "o.html", n="3")
    figures = session.report["summary"]["eval_fns"]["rewards:exact"]
    assert figures["pass_at_1"] == figures["pass_hat_1"] == 1.0
    assert figures["pass_at_3"] is figures["pass_hat_3"] is None
    assert "pass_at_3" not in figures["intervals"]
    line = next(line for line in session.lines if line.startswith("rewards:exact"))
    assert line.split()[-4:] == ["1.000", "-", "-", "1/1"]
    assert (
        '<td class="num">1.000</td>' + '<td class="num">-</td>' * 2
        in (three.path / "o.html").read_text()
    )


@pytest.mark.fault("`--lf`, `--ff`, `--sw`")
def test_the_last_failures_are_run_again(three: Project):
    whole = three.run(n="2")
    assert whole.outcomes == {"passed": 4, "failed": 2}
    summary = whole.report["summary"]
    assert (summary["selected"], summary["total"], summary["complete"]) == (6, 6, True)
    assert not [line for line in whole.lines if line.startswith("partial")]
    session = three.run("--lf", n="2")
    assert chosen(session) == [(1, 0), (1, 1)]
    assert "partial: 2 of 6 runs selected" in session.lines
    first = three.run("--ff", n="2")
    assert first.report["summary"]["complete"] is True


@pytest.mark.fault("`-x`, `--maxfail`")
def test_it_stops_at_the_first_failure_and_cancels_what_is_in_flight(three: Project):
    three.endpoint.answers = lambda ask: ["hang"] if ask.row == "gamma" else ask.row
    session = three.run("-x", "--batch-size=3")
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert session.ret == 1
    assert session.report["summary"]["complete"] is False
    assert chosen(session) == [(0, 0), (1, 0)]
    assert three.endpoint.wait_until(lambda endpoint: endpoint.in_flight == 0)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-x", "--maxfail=1", "--sw"])
def test_workers_stop_at_the_first_failure_too(three: Project, option: str):
    three.rows({"user_prompt": "beta", "ground_truth": "B"}, *["gamma"] * 5)
    three.endpoint.answers = lambda ask: ["hang"] if ask.row == "gamma" else ask.row
    session = three.run(option, "--batch-size=4", workers=2)
    assert session.outcomes == {"failed": 1}
    assert session.ret == 2
    assert session.report["summary"]["complete"] is False
    assert chosen(session) == [(0, 0)]
    assert three.endpoint.wait_until(lambda endpoint: endpoint.in_flight == 0)


@pytest.mark.fault("`--lf`, `--ff`, `--sw`")
@pytest.mark.slow
def test_stepwise_goes_on_where_it_stopped(three: Project):
    three.endpoint.answers = lambda ask: ["hang"] if ask.row == "gamma" else ask.row
    stopped = three.run("--sw")
    assert stopped.outcomes == {"passed": 1, "failed": 1}
    assert stopped.report["summary"]["complete"] is False
    three.endpoint.answers = None
    three.rows("alpha", "beta", "gamma")
    assert three.run("--sw").outcomes == {"passed": 2, "deselected": 1}


class TestPlan:
    @pytest.mark.fault("`--collect-only`")
    @pytest.mark.parametrize("workers", [0, 2])
    def test_it_counts_without_a_request_a_worker_or_a_key(self, three: Project, workers: int):
        session = three.run(
            "--collect-only", "--eval-fn=rewards:length", "--batch-size=8",
            n="5", api_key_env="NO_SUCH_KEY", workers=workers,
        )  # fmt: skip
        assert session.ret == 0
        assert "data.jsonl: 3 rows x 5 runs x 2 eval functions = 15 rollouts" in session.lines
        assert three.endpoint.connections == 0
        assert not (three.path / "out.json").exists()
        assert "osmosis summary" not in session.out

    def test_a_plan_lists_the_items_and_runs_none(self, three: Project):
        session = three.run("--setup-plan", "--batch-size=2", workers=2, output=None)
        assert session.ret == 0
        assert "data.jsonl::row-0[run-0]" in session.out
        assert "never reported" not in session.out
        assert three.endpoint.connections == 0

    @pytest.mark.parametrize(
        "option", ["--setup-only", "--fixtures", "--fixtures-per-test", "--cache-show"]
    )
    def test_a_session_that_shows_something_else_runs_none_and_leaves_the_report(
        self, three: Project, option: str
    ):
        report = three.write("results.json", "an earlier one")
        session = three.run(option, output="results.json")
        assert session.ret == 0
        assert "osmosis summary" not in session.out
        assert three.endpoint.connections == 0
        assert report.read_text() == "an earlier one"

    def test_setting_fixtures_up_skips_a_marked_test_without_its_rollout(self, three: Project):
        three.write(
            "test_marked.py",
            "import pytest\n\n@pytest.mark.osmosis(agent='agent:agent_loop', data='data.jsonl')\n"
            "def test_it(rollout): pass\n",
        )
        session = three.run(
            "--setup-only", "test_marked.py", data=None, agent=None, eval_fn=None, output=None
        )
        assert (session.ret, session.outcomes) == (0, {"skipped": 3})
        assert three.endpoint.connections == 0


class TestBesideTests:
    def test_data_on_the_command_line_is_collected_alone(self, three: Project):
        said = "osmosis: the evaluation alone runs; to run the other tests too, name them: pytest "
        three.write("tests/test_other.py", "def test_other(): pass\n")
        three.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
        session = three.run()
        assert session.outcomes == {"passed": 2, "failed": 1}
        assert f"{said}tests --osmosis-agent ..." in session.lines
        both = three.run("tests", "-n0")
        assert both.outcomes == {"passed": 3, "failed": 1}
        assert said not in both.out

    def test_it_is_collected_once_below_a_folder_of_tests(self, three: Project):
        three.rows("a", "b", name="tests/data.jsonl")
        three.write("tests/test_other.py", "def test_other(): pass\n")
        three.write("pytest.ini", "[pytest]\ntestpaths = tests\nosmosis_data = tests/data.jsonl\n")
        assert three.run(data=None).outcomes == {"passed": 3}

    def test_a_data_file_that_no_option_names_is_left_alone(self, three: Project):
        three.rows("x", name="other.jsonl")
        three.write("test_other.py", "def test_other(): pass\n")
        session = three.run(".")
        assert "other.jsonl" not in session.out

    def test_fixtures_of_a_conftest_do_not_matter(self, three: Project):
        three.write(
            "conftest.py",
            """
import pytest


@pytest.fixture(autouse=True)
def surprise():
    raise RuntimeError("not for runs of an agent")
""",
        )
        assert three.run().outcomes == {"passed": 2, "failed": 1}


@pytest.mark.fault("two datasets in one session")
def test_two_data_files_are_two_evaluations_of_one_report(project: Project):
    project.rows("a", "b", name="one.jsonl")
    project.rows("c", {"user_prompt": "d", "ground_truth": "x"}, name="two.jsonl")
    session = project.run("--junitxml=out.xml", "--osmosis-data=two.jsonl", data="one.jsonl")
    assert session.outcomes == {"passed": 3, "failed": 1}
    properties = {each.get("name"): each.get("value") for each in session.junit.iter("property")}
    assert properties["one.jsonl::osmosis_mean[rewards:exact]"] == "1.0"
    assert properties["two.jsonl::osmosis_mean[rewards:exact]"] == "0.5"
    report = session.report
    assert [(row["suite"], row["row_index"]) for row in report["rows"]] == [
        ("one.jsonl", 0),
        ("one.jsonl", 1),
        ("two.jsonl", 0),
        ("two.jsonl", 1),
    ]
    means = {
        suite["name"]: suite["summary"]["eval_fns"]["rewards:exact"]["mean"]
        for suite in report["suites"]
    }
    assert means == {"one.jsonl": 1.0, "two.jsonl": 0.5}
    assert report["summary"]["total_runs"] == 4
    words = project.options("--osmosis-data=two.jsonl", data="one.jsonl")
    assert project.plain(*words, "two.jsonl::row-1[run-0]").outcomes == {"failed": 1}
    whole = project.plain(*words, "one.jsonl")
    assert (whole.ret, whole.outcomes) == (0, {"passed": 2})


KEEPER = """
import json
from pathlib import Path

import pytest

KEPT = pytest.StashKey()


class Plain(pytest.Item):
    def runtest(self):
        pass


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    plain = Plain.from_parent(items[0].parent, name="plain")
    lacking = [[name for name in vars(plain) if not hasattr(item, name)] for item in items]
    for item in items:
        item.stash[KEPT] = item.name
        item.user_properties.append(("named", item.name))
    items[1].add_marker("chosen")
    items[2].extra_keyword_matches.add("picked")
    noted = {
        "lacking": lacking,
        "same stash": all(item._store is item.stash for item in items),
        "kept": [item.stash[KEPT] for item in items],
        "properties": [item.user_properties for item in items],
        "keywords": [item.name in item.keywords for item in items],
        "marked": ["chosen" in item.keywords for item in items],
        "unlike": len({id(item.own_markers) for item in items}),
    }
    Path("noted.json").write_text(json.dumps(noted))
"""


def test_items_have_all_that_other_plugins_keep_with_an_item(three: Project):
    three.write("conftest.py", KEEPER)
    three.write("pytest.ini", "[pytest]\nmarkers = chosen\n")
    marked = three.run("--collect-only", "-q", "-m", "chosen")
    assert [line for line in marked.lines if "::" in line] == ["data.jsonl::row-1[run-0]"]
    picked = three.run("--collect-only", "-q", "-k", "picked")
    assert [line for line in picked.lines if "::" in line] == ["data.jsonl::row-2[run-0]"]
    names = [f"row-{row}[run-0]" for row in range(3)]
    assert json.loads((three.path / "noted.json").read_text()) == {
        "lacking": [[], [], []],
        "same stash": True,
        "kept": names,
        "properties": [[["named", name]] for name in names],
        "keywords": [True, True, True],
        "marked": [False, True, False],
        "unlike": 3,
    }


READER = """
import inspect
import json
from pathlib import Path

import pytest


def read(item):
    inspect.getsource(item.function)
    given = item.obj.__doc__, item.function.__name__, item.module.__name__, item.cls, item.instance
    if "db" in item.fixturenames or item.funcargs.get("db") or not all(given[1:3]):
        raise RuntimeError(item.name)


def pytest_collection_modifyitems(items):
    for item in items:
        read(item)
        if item.name != "test_it":
            item.fixturenames.append(item.name)
            item.funcargs["name"] = item.name
    noted = [[item.fixturenames, item.funcargs] for item in items if item.name != "test_it"]
    Path("noted.json").write_text(json.dumps(noted))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    read(item)
    return (yield)
"""


@each_mode
def test_a_conftest_may_read_of_every_item_what_functions_and_doctests_have(
    three: Project, workers: int
):
    three.write("conftest.py", READER)
    three.write("test_it.py", "def test_it():\n    pass\n")
    session = three.run("--setup-show", "test_it.py", "data.jsonl", workers=workers)
    assert session.outcomes == {"passed": 3, "failed": 1}, session.out + session.err
    names = ["row-0[run-0]", "row-1[run-0]", "row-2[run-0]"]
    noted = json.loads((three.path / "noted.json").read_text())
    assert noted == [[[name], {"name": name}] for name in names]
