"""Options that could have no effect are refused: held for the whole table of options."""

from __future__ import annotations

import sys

import pytest

from pytest_osmosis.features.table import BY_NAME, OPTIONS, Option
from pytest_osmosis.options.reader import OptionReader
from tests.support.project import Project

VALUES = {
    "agent": "agent:agent_loop", "grader": "agent:Grader", "eval-fn": "rewards:exact", "n": "2",
    "map": "a=user_prompt", "rows": "0", "limit": "1", "offset": "1", "sample": "1",
    "sample-seed": "3", "shard": "1/2", "api-key-env": "MY_KEY", "pass-env": "MY_KEY",
    "price-per-mtok": "1,1", "temperature": "0.5", "top-p": "0.5", "ray-cpus": "2",
    "ray-env": "A=b", "gate": "mean > 0", "baseline": "last", "baseline-base-url": "provider",
    "retry-failed": "all", "rescore": "last", "inputs": "*.txt", "replay-missing": "error",
    "base-url": "http://127.0.0.1:9/v1", "baseline-api-key-env": "MY_KEY", "ray": "auto",
    "header": "X-Tag=a", "extra-body": '{"a": 1}',
}  # fmt: skip
"""Values of options that do not take any text, or any number."""


def value_of(name: str) -> str:
    option = BY_NAME[name]
    return VALUES.get(name) or ("7" if option.metavar in ("N", "S", "K", "USD") else "text")


def spelled(name: str) -> str:
    option = BY_NAME[name]
    return option.flag_name if option.flag else f"{option.flag_name}={value_of(name)}"


def ini(*names: str) -> str:
    given = {one: "true" if BY_NAME[one].flag else value_of(one) for one in names}
    lines = (f"{BY_NAME[one].ini_name} = {value}" for one, value in given.items())
    return "\n".join(["[pytest]", *lines, ""])


def with_(field: str) -> list[Option]:
    return [option for option in OPTIONS if getattr(option, field)]


def pairs(field: str) -> list[tuple[str, str]]:
    return [(option.name, other) for option in with_(field) for other in getattr(option, field)]


def refused(project: Project, *words: str) -> str:
    """The sentence that refuses a command line."""
    project.rows("a")
    usual = {
        "agent": "agent:agent_loop",
        "data": "data.jsonl",
        "model": "m",
        "base-url": "http://x",
    }
    given = {word.partition("=")[0] for word in words}
    rest = [f"--osmosis-{name}={value}" for name, value in usual.items()]
    if "--osmosis-rescore=last" in words:
        rest = []
    rest = [word for word in rest if word.partition("=")[0] not in given]
    session = project.plain("-n0", *rest, *words)
    status = 125 if "--osmosis-bisect" in given else 4
    assert (session.ret, project.endpoint.requests, session.out) == (status, 0, "")
    assert "Traceback" not in session.err
    return session.mistake


@pytest.mark.parametrize("option", with_("needs"), ids=lambda option: option.name)
def test_one_that_is_nothing_alone_names_what_it_needs(project: Project, option: Option):
    needed = [BY_NAME[name].flag_name for name in option.needs]
    said = f"{option.flag_name} needs {' or '.join(needed)} too"
    if "data" not in option.needs:
        assert refused(project, spelled(option.name)) == said
        project.write("pytest.ini", ini(option.name))
        assert refused(project) == f"{option.ini_name} needs {' or '.join(needed)} too"
        return
    session = project.plain("--osmosis-model=embedded", spelled(option.name))
    assert (session.ret, session.mistake) == (4, said)
    project.write("pytest.ini", ini(option.name))  # the command line names the data at times
    project.write("test_unit.py", "def test_unit(): pass")
    assert project.plain("test_unit.py").ret == 0


@pytest.mark.parametrize(("one", "other"), pairs("excludes"))
def test_those_that_exclude_each_other_are_refused_wherever_they_stand(
    project: Project, one: str, other: str
):
    first, second = BY_NAME[one], BY_NAME[other]
    both = "{} and {} contradict each other: give one of them"
    said = both.format(first.flag_name, second.flag_name)
    assert refused(project, spelled(one), spelled(other)) == said
    project.write("pytest.ini", ini(other))
    said = both.format(first.flag_name, second.ini_name)
    assert refused(project, spelled(one)) == said


@pytest.mark.parametrize(("one", "other"), pairs("replaces"))
def test_one_without_effect_beside_another_is_refused_on_the_command_line(
    project: Project, one: str, other: str
):
    first, second = BY_NAME[one], BY_NAME[other]
    said = f"{second.flag_name} has no effect beside {first.flag_name}: leave out one of them"
    assert said in refused(project, spelled(one), spelled(other))
    project.write("pytest.ini", ini(other))
    given = OptionReader(project.pytester.parseconfig(spelled(one)))
    assert given.raw(other) is None and given.raw(one) is not None
    assert OptionReader(project.pytester.parseconfig()).raw(other) is not None


AGENTS = """
import sys

def ask(question): return question
def named(question, model): return model
async def loop(ctx): return ctx.complete([*ctx.request.messages])
"""
REACHING = [option for option in with_("reaches") if option.name != "baseline-model"]


@pytest.mark.fault(
    "an option can have no effect: it reaches no agent, lacks another, or stands beside one that "
    "excludes it"
)
@pytest.mark.parametrize("option", REACHING, ids=lambda option: option.name)
def test_one_that_reaches_no_agent_is_refused(
    project: Project, option: Option, monkeypatch: pytest.MonkeyPatch
):
    # `record` in this process, as other tests have it, would let prices reach the function
    monkeypatch.delitem(sys.modules, "osmosis_ai.recording", raising=False)
    project.write("app.py", AGENTS)
    project.write("p.txt", "Be brief.")
    name = option.name
    value = "p.txt" if name == "system-prompt-file" else value_of(name)
    without = {"agent": "app:ask", "model": None, "base_url": None}
    project.rows("a")
    session = project.plain(*project.options("-n0", f"{option.flag_name}={value}", **without))
    assert (session.ret, session.out) == (4, "")
    assert session.mistake.startswith(f"{option.flag_name} cannot reach app:ask, which ")
    if option.reaches in ("model", "endpoint", "usage"):
        assert "def agent(question, model, base_url, api_key):" in session.err
    project.write("pytest.ini", f"[pytest]\n{option.ini_name} = {value}\n")
    session = project.plain(*project.options("-n0", **without))
    if name == "model":
        assert session.ret == 0
        said = "osmosis: osmosis_model text is not used: app:ask has no parameters for a model"
        assert said in session.lines and session.report["config"]["model"] == "its own model"
    else:
        assert (session.ret, session.out) == (4, "")
        assert session.mistake.startswith(f"{option.ini_name} cannot reach app:ask, which ")


ONE, TWO = ["app:ask"], ["agent:agent_loop", "app:ask"]


@pytest.mark.parametrize(
    ("agents", "models"),
    [
        (ONE, ["--osmosis-model=a", "--osmosis-model=b"]),
        (TWO, ["--osmosis-model=a", "--osmosis-model=b"]),
        (ONE, ["--osmosis-model=a", "--osmosis-baseline-model=b"]),
        (ONE, ["--osmosis-baseline-model=b"]),
    ],
)
def test_models_are_not_compared_by_an_agent_that_asks_its_own(
    project: Project, agents: list[str], models: list[str]
):
    project.write("app.py", AGENTS)
    given = [f"--osmosis-agent={agent}" for agent in agents]
    project.rows("a")
    url = None if agents is ONE else project.endpoint.base_url
    session = project.run(*given, *models, agent=None, model=None, base_url=url)
    status = 125 if "--osmosis-bisect" in given else 4
    assert (session.ret, project.endpoint.requests, session.out) == (status, 0, "")
    assert "cannot reach app:ask, which asks a model of its own" in session.mistake


def test_one_model_beside_an_agent_that_asks_its_own_stands_for_the_other_alone(
    project: Project,
):
    project.write("app.py", AGENTS)
    project.rows("a")
    agents = ["--osmosis-agent=agent:agent_loop", "--osmosis-agent=app:ask"]
    session = project.run(*agents, "--osmosis-temperature=0.5", agent=None)
    assert session.outcomes == {"passed": 2}
    found = {each["config"]["label"]: each["config"] for each in session.report["suites"]}
    assert found["agent_loop"]["model"] == "m"
    assert found["agent_loop"]["settings"]["temperature"] == 0.5
    assert found["ask"]["model"] == "its own model"
    assert "temperature" not in found["ask"]["settings"]


def test_a_name_alone_reaches_a_function_that_takes_it_alone(project: Project):
    project.write("app.py", AGENTS)
    project.rows({"user_prompt": "?", "ground_truth": "some/model"})
    given = {"agent": "app:named", "model": "some/model", "base_url": None}
    session = project.run(**given)
    assert session.outcomes == {"passed": 1}, session.out
    session = project.run("--osmosis-temperature=1", **given)
    assert session.ret == 4
    assert "--osmosis-temperature cannot reach app:named" in session.mistake


def test_a_loop_by_which_no_call_reaches_the_model_is_said_to_ask_its_own(
    project: Project,
):
    project.write("app.py", AGENTS)
    project.rows("a")
    session = project.run(agent="app:loop")
    assert session.report["config"]["model"] == "its own model"


def test_the_command_names_its_own_options(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from osmosis_cli.errors import run
    from osmosis_cli.main import cli

    project.write("app2.py", AGENTS)
    project.rows("a")
    monkeypatch.chdir(project.path)
    words = ["eval", "-m", "app2:ask", "-d", "data.jsonl", "--eval-fn", "rewards:exact"]
    assert run(cli, [*words, "--model", "m"]) == 4
    assert "--model cannot reach app2:ask" in capsys.readouterr().err
    assert run(cli, [*words, "--sample-seed", "3"]) == 4
    assert "--sample-seed needs --sample too" in capsys.readouterr().err


def test_an_argument_of_the_marker_that_cannot_reach_its_agent_is_refused(
    project: Project,
):
    project.write("app.py", AGENTS)
    project.rows("a")
    for argument in ("model='embedded'", "max_turns=3"):
        name = argument.partition("=")[0]
        project.write(
            "test_app.py",
            "import pytest\n"
            f"@pytest.mark.osmosis(agent='app:ask', data='data.jsonl', {argument})\n"
            "def test_it(rollout): assert rollout.text == 'a'\n",
        )
        session = project.plain("-n0", "test_app.py")
        assert session.outcomes == {"errors": 1}
        assert f"@pytest.mark.osmosis({name}=...) cannot reach app:ask, which" in session.out


def test_a_cassette_says_that_it_does_not_have_the_calls_of_an_agents_own_client(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.write("app.py", AGENTS)
    project.rows("a")
    monkeypatch.delitem(sys.modules, "osmosis_ai.recording", raising=False)
    own = {"agent": "app:ask", "model": None, "base_url": None}
    session = project.run("--osmosis-record=taped", **own)
    assert "osmosis: app:ask asks a model of its own: those calls stay as they are" in session.lines
