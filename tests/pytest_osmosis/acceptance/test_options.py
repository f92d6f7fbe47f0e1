"""Options and their ini twins: what they mean, and what is said about a wrong one."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from pytest_osmosis.features.table import GROUPS, OPTIONS
from tests.support.project import AGENT, NO_NEIGHBOURS, Project, Session

KEY = "sk-a-key-that-nobody-may-see"


SENDER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def test_an_extra_that_is_missing_is_named(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.rows("a")
    monkeypatch.setitem(sys.modules, SENDER, None)
    session = project.run("--osmosis-otel")
    assert (session.ret, project.endpoint.requests) == (4, 0)
    assert session.mistake == (
        "--osmosis-otel needs the extra otel: pip install 'pytest-osmosis[otel]'"
    )


def test_a_mistake_is_reported_by_the_controller_alone(project: Project):
    project.write("data.jsonl", '{"user_')
    session = project.run(workers=2)
    assert (session.ret, project.endpoint.requests) == (4, 0)
    assert session.err.count("not JSON") == 1
    assert session.out == ""


@pytest.mark.fault("no row is selected", "it has no bytes, only blank lines, or no rows")
@pytest.mark.parametrize("options", [{"offset": "7"}, {"data": "none.jsonl"}])
def test_nothing_to_run_is_said_and_exits_with_5(project: Project, options: Any):
    project.rows("a", "b")
    project.write("none.jsonl", "\n")
    session = project.run(**options)
    assert session.ret == 5
    said = "has 2 rows; an offset of 7 is past the last one" if "offset" in options else "no rows"
    assert session.out.count(said) == 1


@pytest.mark.fault(
    "the key is given on the command line", "the key is in `addopts` or PYTEST_ADDOPTS"
)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("command line", "every user of this machine can read a command line"),
        ("addopts", "--osmosis-api-key-env"),
        ("ini file", "osmosis_api_key: everyone who gets the file gets the key"),
    ],
)
def test_a_key_where_others_see_it_works_and_is_warned_about_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, where: str, said: str
):
    project.rows("a", "b")
    project.endpoint.api_key = KEY
    if where == "addopts":
        monkeypatch.setenv("PYTEST_ADDOPTS", f"{NO_NEIGHBOURS} --osmosis-api-key={KEY}")
    ini = f"osmosis_api_key = {KEY}\n" if where == "ini file" else ""
    project.write("pytest.ini", f"[pytest]\n{ini}")
    given = KEY if where == "command line" else None
    session = project.run(api_key=given)
    assert session.outcomes == {"passed": 2, "warnings": 1}
    assert session.out.count(said) == 1
    assert KEY not in session.out
    if given:
        assert said in project.run("-Werror", api_key=KEY).mistake


def test_a_key_comes_from_the_variable_that_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.rows("a")
    project.endpoint.api_key = KEY
    monkeypatch.setenv("MY_KEY", KEY)
    assert project.run(api_key_env="MY_KEY").ret == 0
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert project.run().ret == 0


def test_over_plain_http_a_key_goes_to_another_machine_only_when_its_variable_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.rows("a")
    monkeypatch.setenv("HTTP_PROXY", f"http://{project.endpoint.netloc}")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    elsewhere = "http://model.example/v1"
    session = project.run(base_url=elsewhere)
    assert (session.ret, project.endpoint.requests) == (0, 1)
    assert "authorization" not in project.endpoint.last_headers
    note = "osmosis: no key is sent over plain http to model.example: give --osmosis-api-key-env "
    assert f"{note}OPENAI_API_KEY to send it" in session.lines
    named = project.run(base_url=elsewhere, api_key_env="OPENAI_API_KEY")
    assert project.endpoint.last_headers["authorization"] == f"Bearer {KEY}"
    assert "osmosis: key: OPENAI_API_KEY -> model.example" in named.lines
    project.endpoint.api_key = KEY
    refused = project.run(base_url=elsewhere).refusal
    assert "none was sent: over plain http it is sent only from a variable that" in refused


@pytest.mark.slow
def test_an_address_of_a_provider_over_plain_http_takes_no_key_that_is_not_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.rows("a")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "HTTP://model.example/v1")
    provider = {"model": "openai/m", "base_url": None}
    assert project.run("--collect-only", **provider).ret == 0
    assert project.run(**provider).mistake == (
        "API key: OPENAI_API_KEY is not sent over plain http to model.example: give "
        "--osmosis-api-key-env OPENAI_API_KEY to send it"
    )


class TestIni:
    def test_a_suite_can_live_in_the_ini_file(self, project: Project):
        project.rows("a", "b", "c")
        project.write(
            "pyproject.toml",
            f"""
[tool.pytest.ini_options]
osmosis_agent = "agent:agent_loop"
osmosis_data = ["data.jsonl"]
osmosis_eval_fn = ["rewards:exact", "rewards:length"]
osmosis_model = "m"
osmosis_base_url = "{project.endpoint.base_url}"
osmosis_n = "2"
osmosis_pass_threshold = "0.1"
osmosis_limit = "2"
osmosis_seed = "7"
osmosis_no_answers = true
osmosis_output = "out.json"
""",
        )
        session = project.plain("--strict-config")
        assert session.outcomes == {"passed": 4}
        report = session.report
        assert report["config"]["eval_fns"] == ["rewards:exact", "rewards:length"]
        assert report["config"]["n_runs"] == 2
        assert [run["answer"] for run in session.runs] == [None] * 4
        assert [ask.body["seed"] for ask in project.endpoint.seen] == [7, 8, 7, 8]

    def test_the_command_line_wins(self, project: Project):
        project.rows("a", "b")
        project.write("pytest.ini", "[pytest]\nosmosis_n = 5\nosmosis_limit = 1\n")
        session = project.run(n="2")
        assert session.outcomes == {"passed": 2}

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (["n = many"], "osmosis_n 'many': expected a whole number"),
            (["gate =", "  mean >= 0.5", "  nonsense"], "osmosis_gate 'nonsense'"),
            (["gates =", "  mean >= 0.5", "  nonsense"], "osmosis_gates 'nonsense'"),
            (
                ["eval_fn = rewards:exact", "osmosis_eval_fns = rewards:length"],
                "osmosis_eval_fn and osmosis_eval_fns are the same key: give one of them",
            ),
            (["modle = m"], "osmosis_modle: no such key, in {ini}; did you mean osmosis_model?"),
            (["dataset = m"], "osmosis_dataset: no such key, in {ini}; did you mean osmosis_data?"),
            (["data = dta.jsonl"], "osmosis_data {folder}/dta.jsonl: no such file"),
        ],
        ids=str,
    )
    def test_a_mistake_is_reported_by_the_name_of_its_key(
        self, project: Project, lines: list[str], message: str
    ):
        project.rows("a")
        ini = project.write("pytest.ini", "[pytest]\nosmosis_" + "\n".join(lines))
        data = None if "dta" in lines[0] else "data.jsonl"
        session = project.run(eval_fn=None, data=data)
        assert session.mistake.startswith(message.format(ini=ini, folder=project.path))
        project.write("test_unit.py", "def test_unit(): pass\n")
        assert project.plain("-n0", "test_unit.py").ret == 0

    def test_every_option_has_a_twin(self, pytester: pytest.Pytester):
        printed = pytester.runpytest_inprocess("--help").stdout.str()
        for option in OPTIONS:
            assert f"  {option.flag_name}" in printed
            assert f"\n  {option.ini_name} (" in printed
        titles = [line for line in printed.splitlines() if line.startswith("osmosis: ")]
        assert [line.rpartition(": ")[2] for line in titles] == [f"{title}:" for title in GROUPS]

    @pytest.mark.skipif(pytest.version_tuple < (9,), reason="[tool.pytest] is new in pytest 9")
    def test_the_table_of_pytest_9_takes_values_with_their_types(self, project: Project):
        project.rows("a", "b", "c")
        table = (
            "[tool.pytest]\nosmosis_n = 2\nosmosis_pass_threshold = 0.5\nosmosis_limit = '2'\n"
            "osmosis_eval_fns = 'rewards:exact'\nosmosis_gates = ['mean >= 0.5']\n"
            "osmosis_no_answers = true\n"
        )
        project.write("pyproject.toml", table)
        session = project.run(model="echo", eval_fn=None)
        assert session.outcomes == {"passed": 4, "gate": 1}, session.out
        config = session.report["config"]
        assert (config["n_runs"], config["pass_threshold"]) == (2, 0.5)
        assert session.runs[0]["scores"] == {"rewards:exact": 1.0}
        assert "answer" not in session.runs[0] or session.runs[0]["answer"] is None
        project.write("pyproject.toml", "[tool.pytest]\nosmosis_n = 1.5\n")
        assert project.run().mistake.startswith("osmosis_n '1.5': expected a whole number")
        project.write("pyproject.toml", "[tool.pytest]\nosmosis_n = true\n")
        assert "osmosis_n" in project.run().mistake


class TestPaths:
    @pytest.mark.fault("the current directory is not the root")
    def test_on_the_command_line_they_start_at_the_current_directory(self, project: Project):
        project.write("pytest.ini", "[pytest]\n")
        project.rows("a", name="sub/data.jsonl")
        os.chdir(project.path / "sub")
        session = project.run("--rootdir=..", "-c../pytest.ini")
        assert session.outcomes == {"passed": 1}
        assert (project.path / "sub" / "out.json").is_file()
        assert not (project.path / "out.json").exists()

    @pytest.mark.fault("the current directory is not the root")
    def test_in_the_ini_file_they_start_at_the_root(self, project: Project):
        project.rows("a")
        project.write(
            "pytest.ini", "[pytest]\nosmosis_data = data.jsonl\nosmosis_output = out.json\n"
        )
        (project.path / "sub").mkdir()
        os.chdir(project.path / "sub")
        session = project.run(data=None, output=None)
        assert session.outcomes == {"passed": 1}
        assert (project.path / "out.json").is_file()


class TestSpellings:
    def test_an_option_of_another_plugin_is_no_mistake(self, project: Project):
        project.write(
            "conftest.py",
            "def pytest_addoption(parser):\n"
            "    parser.addoption('--osmosis-modle')\n"
            "    parser.addini('osmosis_modle', 'another')\n",
        )
        project.write("pytest.ini", "[pytest]\nosmosis_modle = 1\n")
        project.rows("a")
        assert project.run("--osmosis-modle=x").ret == 0

    def test_the_short_ones_mean_the_same(self, project: Project):
        project.rows("a", "b")
        session = project.plain(
            *project.options(eval_fn=None),
            *("--n", "2", "--pass-threshold", "0.5", "--batch-size", "2", "-n0"),
            *("--eval-fn", "rewards:exact", "--eval-fn", "rewards:length"),
        )
        config = session.report["config"]
        assert (config["n_runs"], config["pass_threshold"]) == (2, 0.5)
        assert config["eval_fns"] == ["rewards:exact", "rewards:length"]
        assert "2 in flight" in session.out

    @pytest.mark.slow
    @pytest.mark.parametrize("where", ["conftest.py", "other.py"])
    def test_one_that_another_plugin_has_is_left_to_it(
        self, project: Project, monkeypatch: pytest.MonkeyPatch, where: str
    ):
        project.rows("a")
        project.write(
            where,
            """
def pytest_addoption(parser):
    parser.addoption("--n", dest="their_n", type=int)
    parser.addoption("--batch-size", dest="their_batch_size")


def pytest_report_header(config):
    return f"theirs: {config.option.their_n} {config.option.their_batch_size}"
""",
        )
        plugin = ["-p", "other"] if where == "other.py" else []
        monkeypatch.setenv("PYTHONPATH", str(project.path))
        session = project.apart(
            *plugin,
            *project.options("--n=7", "--batch-size=many", "--osmosis-n=2", "-n0"),
            *("--pass-threshold=0.5",),
        )
        assert "theirs: 7 many" in session.out
        assert session.outcomes == {"passed": 2}
        assert session.report["config"]["pass_threshold"] == 0.5


class TestRequest:
    def test_sampling_is_sent_only_when_it_is_given(self, project: Project):
        project.rows("a")
        project.run()
        project.run(temperature="0.5", max_tokens="100", top_p="0.9", seed="3")
        bare, full = (ask.body for ask in project.endpoint.seen)
        names = {"temperature", "max_tokens", "top_p", "seed"}
        assert not names.intersection(bare)
        assert {name: full[name] for name in names} == {
            "temperature": 0.5,
            "max_tokens": 100,
            "top_p": 0.9,
            "seed": 3,
        }

    def test_the_request_holds_prompts_columns_and_limits(self, project: Project):
        project.write(
            "agent.py",
            AGENT.replace(
                'wish = messages[-1]["content"]',
                "import json\n"
                '        wish = ""\n'
                '        with open("request.json", "w") as file:\n'
                "            json.dump(ctx.request.model_dump(mode='json'), file)\n",
            ),
        )
        project.rows("first", {"user_prompt": "u", "ground_truth": "u", "level": 3})
        project.run("--osmosis-max-turns=4", n="2", temperature="0.5")
        request = json.loads((project.path / "request.json").read_text())
        assert request["rollout_id"] == "eval-1-run-1"
        assert request["messages"] == [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "u"},
        ]
        assert request["max_turns"] == 4
        assert request["completion_params"] == {"temperature": 0.5}
        assert request["metadata"] == {
            "level": 3,
            "ground_truth": "u",
            "row_index": 1,
            "run_index": 1,
            "execution_mode": "eval",
        }


class TestMarks:
    TEST = """
import pytest


@pytest.mark.osmosis({arguments})
def test_answer(rollout):
    assert rollout.solution_str == rollout.ground_truth
    rollout.record_score("length", len(rollout.solution_str))
    rollout.record_score("brevity", 1.0, pass_threshold=0.5)
"""

    def session(self, project: Project, arguments: str, *args: str, **options: Any) -> Session:
        project.write("test_it.py", self.TEST.format(arguments=arguments))
        usual = {"agent": None, "data": None, "eval_fn": None, **options}
        return project.run("--strict-markers", "-Werror", *args, **usual)

    def test_a_marked_test_runs_on_every_row_and_run(self, project: Project):
        project.rows("a", {"user_prompt": "b", "ground_truth": "c"})
        session = self.session(project, 'agent="agent:agent_loop", data="data.jsonl", n=2')
        assert session.outcomes == {"passed": 2, "failed": 2}
        assert session.ret == 1
        figures = session.report["summary"]["eval_fns"]
        assert (figures["test"]["mean"], figures["test"]["pass_at_1"]) == (0.5, 0.5)
        length, brevity = figures["length"], figures["brevity"]
        assert (length["mean"], length["scored"], length["missing"]) == (1.0, 2, 2)
        assert "pass_at_1" not in length and length["recorded"]
        assert (brevity["pass_at_1"], brevity["threshold"]) == (1.0, 0.5)
        [shown] = [line.split() for line in session.lines if line.startswith("length ")]
        assert shown[-3:] == ["-", "-", "2/4"]
        assert [run["passed"] for run in session.runs] == [True, True, False, False]

    def test_a_mark_leaves_agent_and_data_to_the_ini_file(self, project: Project):
        project.rows("a")
        keys = "osmosis_agent = agent:agent_loop\nosmosis_data = data.jsonl"
        project.write("pytest.ini", f"[pytest]\n{keys}\n")
        project.write("sub/test_it.py", self.TEST.format(arguments=""))
        session = project.run("sub", agent=None, data=None, eval_fn=None)
        assert session.outcomes == {"passed": 1}
