"""An evaluation in the ini file leaves the sessions alone that select none of its items."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.endpoints import Endpoint
from tests.support.project import Project, Session

INI = """
[pytest]
markers = slow: takes long
osmosis_agent = agent:agent_loop
osmosis_data = data.jsonl
osmosis_eval_fn = rewards:exact
osmosis_model = m
osmosis_base_url = {base_url}
osmosis_batch_size = 16
"""
UNIT = """
import pytest

def test_unit():
    pass

@pytest.mark.slow
def test_slow():
    pass
"""
MARKED = """
import pytest

@pytest.mark.osmosis(agent="agent:agent_loop", data="../data.jsonl")
def test_marked(rollout):
    assert rollout.solution_str == rollout.ground_truth
"""
BREAKS = """
import sys

def test_breaks():
    breakpoint()
    ours = {name for name in sys.modules if name.startswith("pytest_osmosis.")}
    assert not ours & {"pytest_osmosis.rollouts", "pytest_osmosis.options.build_spec"}
"""


@pytest.fixture
def with_ini(project: Project) -> Project:
    """A project whose ini file has an evaluation of two rows, beside unit tests."""
    project.rows("a", "b")
    project.write("pytest.ini", INI.format(base_url=project.endpoint.base_url))
    project.write("tests/test_unit.py", UNIT)
    return project


def is_left_alone(session: Session, endpoint: Endpoint) -> bool:
    """Whether nothing was evaluated: no header, no worker, no call, no summary."""
    traces = ("osmosis: ", "osmosis summary", "workers", "rollout")
    return not any(trace in session.out for trace in traces) and endpoint.requests == 0


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        (["tests"], 2),
        (["tests/test_unit.py::test_unit"], 1),
        (["-m", "not osmosis"], 2),
        (["-m", "slow"], 1),
        (["-k", "test_slow and not row-0"], 1),
        ([".", "-m", "not osmosis"], 2),
        (["tests", "--dist=loadfile"], 2),
    ],
    ids=str,
)
def test_sessions_without_its_items_are_left_alone(
    with_ini: Project, endpoint: Endpoint, args: list[str], passed: int
):
    session = with_ini.plain(*args)
    assert session.outcomes["passed"] == passed
    assert is_left_alone(session, endpoint), session.out


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        ([], 4),
        (["-k", "row-1"], 1),
        (["data.jsonl"], 2),
        (["data.jsonl::row-1[run-0]", "tests"], 3),
        (["tests", "--osmosis-agent=agent:agent_loop"], 4),
    ],
    ids=str,
)
def test_sessions_with_its_items_evaluate(
    with_ini: Project, endpoint: Endpoint, args: list[str], passed: int
):
    session = with_ini.plain("-n0", *args)
    assert session.outcomes["passed"] == passed
    assert "osmosis: m at 127.0.0.1" in session.out
    assert endpoint.requests == passed - (2 if passed > 2 else 0)  # the unit tests ask nothing


def test_a_word_of_k_may_be_in_the_label_of_a_candidate(with_ini: Project, endpoint: Endpoint):
    models = "--osmosis-model=m", "--osmosis-model=other"
    session = with_ini.plain("-n0", "-k", "other", *models)
    assert session.outcomes["passed"] == endpoint.requests == 2, session.out


@pytest.mark.fault("`--dist loadgroup`, `loadscope`, `loadfile`")
def test_a_dist_of_addopts_that_groups_tests_is_taken_as_load_for_runs_alone(
    with_ini: Project, endpoint: Endpoint
):
    ini = with_ini.path / "pytest.ini"
    ini.write_text(f"{ini.read_text()}addopts = -n2 --dist=loadfile\n")
    session = with_ini.plain("-m", "osmosis")
    assert (session.outcomes["passed"], session.outcomes["warnings"]) == (2, 1), session.out
    said = "--dist loadfile of addopts is taken as --dist load for an evaluation"
    assert session.out.count(said) == 1
    assert "2 workers" in session.out
    endpoint.requests = 0
    refused = with_ini.plain()
    assert refused.mistake == (
        "--dist loadfile of addopts does not go with an evaluation beside other tests: give "
        '--dist load, or run them by themselves with -m "not osmosis", and the evaluation '
        "with -m osmosis"
    )
    assert with_ini.plain("-m", "osmosis", "--dist=loadfile").ret == 4
    assert endpoint.requests == 0
    assert with_ini.plain("-n0").outcomes == {"passed": 4}


def test_what_cannot_be_used_is_no_matter_of_other_sessions(with_ini, endpoint, monkeypatch):
    ini = with_ini.path / "pytest.ini"
    ini.write_text(f"{ini.read_text()}osmosis_n = many\nosmosis_api_key_env = NOT_SET\n")
    (with_ini.path / "data.jsonl").write_text("not JSON")
    assert is_left_alone(with_ini.plain("tests"), endpoint)
    assert is_left_alone(with_ini.plain("-m", "not osmosis"), endpoint)
    assert with_ini.plain().mistake == "osmosis_n 'many': expected a whole number of at least 1"


@pytest.mark.slow
def test_a_breakpoint_in_a_unit_test_works_and_nothing_is_loaded_for_nothing(with_ini, endpoint):
    with_ini.write("tests/test_breaks.py", BREAKS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_breaks.py"],
        cwd=with_ini.path, input="p 6 * 7\nc\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "(Pdb) 42" in done.stdout) == (0, True), done.stdout
    assert endpoint.requests == 0


COUNTING = """
import pytest

@pytest.fixture(scope="session", autouse=True)
def set_up_once():
    with open("set_up.txt", "a") as file:
        file.write("x")
"""
MEASURING = """
class Coverage:
    pass  # pytest-cov's cannot tell workers that are started after it has begun

def pytest_load_initial_conftests(early_config):
    early_config.pluginmanager.register(Coverage(), "_cov")
"""
BESIDE = "all in this one process, as other tests may run too, and stay as they are; -n 2 starts"
SHOWN = "all in this one process, whose output -s shows as it comes; -n 2 starts workers"


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_osmosis.distributed.processes.cores", lambda: 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], BESIDE),
        (["data.jsonl", "tests/test_unit.py"], BESIDE),
        (["tests/test_unit.py", "data.jsonl::row-0[run-0]", "data.jsonl::row-1[run-0]"], BESIDE),
        (["."], BESIDE),
        (["--osmosis-agent=agent:agent_loop", "tests/test_unit.py"], BESIDE),
        (["tests/test_marked.py", "--osmosis-model=m"], BESIDE),
        (["-s", "data.jsonl"], SHOWN),
        (["--capture=no", "-m", "osmosis"], SHOWN),
        (["--pdb", "--osmosis-data=data.jsonl"], "all in this one process, that is debugged"),
        (["-p", "measuring", "data.jsonl"], "all in this one process, whose coverage is measured"),
    ],
)
@pytest.mark.usefixtures("two_cores")
def test_a_batch_size_leaves_other_tests_in_their_process(with_ini, words, said):
    with_ini.write("conftest.py", COUNTING)
    with_ini.write("measuring.py", MEASURING)
    with_ini.pytester.syspathinsert()
    if any("marked" in word for word in words):
        with_ini.write("tests/test_marked.py", MARKED)
    session = with_ini.plain(*words)
    assert session.ret == 0, session.err
    assert session.out.count(said) == 1
    assert "16 in flight\n" in session.out and "created: " not in session.out
    set_up = with_ini.path / "set_up.txt"
    assert not set_up.exists() or set_up.read_text() == "x"


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    "words",
    [
        ["data.jsonl"],
        ["data.jsonl::row-0[run-0]", "data.jsonl::row-1[run-0]"],
        ["-m", "osmosis"],
        ["--osmosis-data=data.jsonl"],
        ["--osmosis-only"],
        ["-o", "testpaths=data.jsonl"],
        ["-n2"],
        ["-n2", "tests", "data.jsonl"],
    ],
)
def test_workers_are_started_where_nothing_else_runs_or_they_are_asked_for(with_ini, words):
    session = with_ini.plain(*words)
    assert session.ret == 0, session.err
    assert "in flight over 2 workers" in session.out
    assert "this one process" not in session.out


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_an_ini_file_without_tests_beside_it_starts_workers(with_ini):
    (with_ini.path / "tests/test_unit.py").unlink()
    assert "created: 2/2 workers" in with_ini.plain().out


def test_an_evaluation_that_is_named_and_left_out_is_not_kept_either(with_ini, endpoint):
    session = with_ini.plain("--osmosis-agent=agent:agent_loop", "-m", "not osmosis")
    assert session.outcomes == {"passed": 2, "deselected": 2}
    assert endpoint.requests == 0
    assert not (with_ini.path / ".osmosis/runs").exists()


def test_a_single_run_needs_no_workers(with_ini, endpoint):
    session = with_ini.plain("data.jsonl::row-1[run-0]")
    assert session.outcomes == {"passed": 1}
    assert "1 in flight" in session.out
    assert "created: " not in session.out


class TestExplicit:
    @pytest.fixture
    def explicit(self, with_ini: Project) -> Project:
        ini = with_ini.path / "pytest.ini"
        ini.write_text(f"{ini.read_text()}osmosis_run = explicit\n")
        with_ini.write("tests/test_marked.py", MARKED)
        return with_ini

    @pytest.mark.parametrize("args", [["."], ["-k", "test_unit"]], ids=str)
    def test_it_waits_to_be_asked(self, explicit: Project, endpoint: Endpoint, args):
        session = explicit.plain(*args)
        assert session.outcomes["passed"] == 2
        assert session.outcomes["deselected"] > 0
        assert is_left_alone(session, endpoint), session.out

    @pytest.mark.parametrize(
        ("args", "passed"),
        [
            (["-m", "osmosis"], 4),
            (["data.jsonl::row-0[run-0]"], 1),
            (["tests/test_marked.py"], 2),
            (["--osmosis-agent=agent:agent_loop", "tests/test_unit.py"], 4),
        ],
        ids=str,
    )
    def test_it_runs_when_asked(self, explicit: Project, args, passed: int):
        assert explicit.plain("-n0", *args).outcomes["passed"] == passed

    def test_another_word_is_a_usage_error(self, with_ini: Project):
        session = with_ini.plain("--osmosis-run=sometimes")
        assert session.mistake == "--osmosis-run 'sometimes': expected 'always' or 'explicit'"


class TestMarkedFunctions:
    @pytest.fixture
    def marked(self, with_ini: Project) -> Project:
        with_ini.write("tests/test_marked.py", MARKED)
        return with_ini

    def test_they_run_where_their_file_is_collected(self, marked: Project, endpoint: Endpoint):
        session = marked.plain("-n0", "tests")
        assert session.outcomes == {"passed": 4}
        assert endpoint.requests == 2
        assert "osmosis: agent:agent_loop on data.jsonl" not in session.out

    def test_sessions_without_them_are_left_alone(self, marked: Project, endpoint: Endpoint):
        session = marked.plain("-k", "test_unit")
        assert session.outcomes["passed"] == 2
        assert is_left_alone(session, endpoint), session.out


AGENT, DATA = "--osmosis-agent=agent:agent_loop", "--osmosis-data=data.jsonl"


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        (
            ["data.jsonl::row-1[run-0]"],
            "run of an evaluation: give --osmosis-agent, --osmosis-data=data.jsonl and "
            "--osmosis-model too",
        ),
        (
            ["data.jsonl::row-1[run-0]", AGENT],  # whether it needs a model the agent says
            "run of an evaluation: give --osmosis-data=data.jsonl too",
        ),
        (
            ["data.jsonl::row-1[run-0]", AGENT, "--osmosis-model=embedded"],
            "run of an evaluation: give --osmosis-data=data.jsonl too",
        ),
        (
            ["data.jsonl::row-1[org/m][run-2]", AGENT, DATA, "--osmosis-model=embedded"],
            "run of an evaluation: give --osmosis-model or --osmosis-agent of each candidate and "
            "--osmosis-n 3 or more too",
        ),
    ],
    ids=str,
)
def test_a_node_id_without_its_options_says_which_are_missing(
    project: Project, args: list[str], missing: str
):
    project.rows("a", "b")
    session = project.plain(*args)
    assert session.ret == 4
    assert session.mistake == (
        f"{args[0]} is a {missing}, or put what is missing into the ini file"
    )


def test_a_node_id_runs_as_the_whole_evaluation_does(project: Project):
    project.write("app.py", "def ask(question): return question\n")
    keys = "osmosis_agent = app:ask\nosmosis_data = data.jsonl\nosmosis_eval_fns = rewards:exact\n"
    project.write("pytest.ini", f"[pytest]\n{keys}osmosis_n = 2\n")
    project.rows("a", "b")
    assert project.plain("-n0").outcomes == {"passed": 4}
    assert project.plain("-n0", "data.jsonl::row-1[run-1]").outcomes == {"passed": 1}
    assert project.plain("-n0", "data.jsonl::row-1[run-2]").ret == 4
    project.write("pytest.ini", f"[pytest]\n{keys}".replace("app:ask", "agent:agent_loop"))
    session = project.plain("-n0", "data.jsonl::row-1[run-0]")
    assert session.mistake.startswith("--osmosis-model is needed: ")


def test_an_agent_in_the_ini_file_alone_says_what_it_lacks(project: Project):
    project.write("pytest.ini", "[pytest]\nosmosis_agent = agent:agent_loop\n")
    session = project.plain("-q")
    assert session.ret == 5
    assert 'evaluates nothing: add osmosis_data = "questions.jsonl" to the ini file' in session.out


def test_node_ids_that_resemble_those_of_runs_are_pytest_s(project: Project):
    project.write(
        "test_it.py",
        "import pytest\n\n"
        "@pytest.mark.parametrize('name', ['run-1'])\ndef test_it(name):\n    pass\n",
    )
    assert project.plain("test_it.py::test_it[run-1]").outcomes == {"passed": 1}
    assert "not found" in project.plain("gone.jsonl::row-1[run-0]").err


ALONE = """
import pytest

ROWS = [{"system_prompt": "", "user_prompt": "a"}]

def agent(question: str) -> str: return question

@pytest.mark.osmosis(agent=agent, data=ROWS, n=2)
def test_it(rollout): assert rollout.text == "a"

def test_other(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "passed", "runs"), [(["-n2"], 3, True), (["-n2", "-k", "other"], 1, False)]
)
def test_workers_run_marked_functions_that_need_no_option(
    pytester: pytest.Pytester, args: list[str], passed: int, runs: bool
):
    pytester.makeini("[pytest]\nosmosis_run = always\n")
    pytester.makepyfile(ALONE)
    result = pytester.runpytest_subprocess(*args)
    result.assert_outcomes(passed=passed)
    assert ("osmosis summary" in result.stdout.str()) is runs


@pytest.mark.slow
def test_workers_without_an_option_name_the_one_that_marked_functions_need(
    pytester: pytest.Pytester,
):
    pytester.makepyfile(ALONE)
    result = pytester.runpytest_subprocess("-n2", "--dist=loadfile")
    assert result.ret == 1
    result.stdout.fnmatch_lines("*@pytest.mark.osmosis needs osmosis_run = always in the ini file*")


def test_marked_functions_alone_wait_to_be_asked_for(pytester: pytest.Pytester):
    pytester.makeini("[pytest]\nosmosis_run = explicit\n")
    pytester.makepyfile(ALONE)
    pytester.runpytest_inprocess("-n0").assert_outcomes(passed=1, deselected=1)
