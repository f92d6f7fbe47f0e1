from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.eval import session
from osmosis_cli.eval.arguments import KEY_VARIABLE, to_pytest_args
from osmosis_cli.main import cli, main
from pytest_osmosis.features.table import GROUPS, OPTIONS
from tests.support.endpoints import Endpoint

KEY = "sk-not-to-be-seen-anywhere"
HELP_LINES = [
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward "
    "--model <your-model> --base-url http://localhost:8000/v1",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:exact_match "
    "--eval-fn rewards:partial_match --model <your-model> --base-url http://localhost:8000/v1",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward "
    "--model openai/gpt-5-mini",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward "
    "--model anthropic/claude-sonnet-4-5",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward --n 5 "
    "--model <your-model> --base-url http://localhost:8000/v1",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward --n 5 "
    "--pass-threshold 0.5 --model <your-model> --base-url http://localhost:8000/v1",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward "
    "--model <your-model> --base-url http://localhost:8000/v1 --batch-size 5",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward --n 10 "
    "--batch-size 5 --model <your-model> --base-url http://localhost:8000/v1",
    "-m server:agent_loop -d test_data.jsonl --eval-fn rewards:compute_reward --n 5 "
    "--model <your-model> --base-url http://localhost:8000/v1 -o results.json",
]
"""The command lines that the documentation of eval mode prints."""


class FakePytest:
    """Stands where pytest is called: keeps what it was called with."""

    def __init__(self) -> None:
        self.args: list[str] = []
        self.argv: list[str] = []
        self.key: str | None = None
        self.status = 0

    def __call__(self, args: Sequence[str], plugins: Sequence[Any]) -> int:
        self.args, self.argv = list(args), list(sys.argv)
        self.key = os.environ.get(KEY_VARIABLE)
        return self.status


@pytest.fixture
def fake_pytest(monkeypatch: pytest.MonkeyPatch) -> FakePytest:
    fake = FakePytest()
    monkeypatch.setattr(session.pytest, "main", fake)
    return fake


def osmosis_eval(*words: str) -> Any:
    return CliRunner().invoke(cli, ["eval", *words])


@pytest.mark.parametrize("line", HELP_LINES)
def test_every_printed_command_line_becomes_the_same_options_of_pytest(
    line: str, fake_pytest: FakePytest
):
    words = line.split()
    done = osmosis_eval(*words)
    assert done.exit_code == 0, done.output
    renamed = {"-m": "--agent", "-d": "--data", "-o": "--output"}
    given = [
        f"--osmosis-{renamed.get(word, word)[2:]}={value}"
        for word, value in zip(words[::2], words[1::2], strict=True)
    ]
    assert fake_pytest.args[:3] == ["-p", "osmosis", "--osmosis-only"]
    assert sorted(fake_pytest.args[3:]) == sorted(given)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--module", "a:b", "--dataset", "d.jsonl"], ["agent=a:b", "data=d.jsonl"]),
        (["--agent=a:b", "--data=d.jsonl"], ["agent=a:b", "data=d.jsonl"]),
        (["-d", "a.jsonl", "-d", "b.jsonl"], ["data=a.jsonl", "data=b.jsonl"]),
        (["--max-turns", "3", "--temperature", "0"], ["temperature=0", "max-turns=3"]),
        (["--max-tokens", "9", "--limit", "2", "--offset", "1"],
         ["limit=2", "offset=1", "max-tokens=9"]),
        (["--temperature", "-1"], ["temperature=-1"]),
        (["--no-answers"], ["no-answers"]),
        (["--debug"], ["debug-dir=.osmosis/debug"]),
        (["--debug", "--debug-dir", "here"], ["debug-dir=here"]),
    ],
)  # fmt: skip
def test_options_are_translated_and_their_values_pass_unread(
    words: list[str], expected: list[str], fake_pytest: FakePytest
):
    assert osmosis_eval(*words).exit_code == 0
    ours = [word for word in fake_pytest.args if word.startswith("--osmosis-")]
    assert ours == ["--osmosis-only", *(f"--osmosis-{word}" for word in expected)]


def test_every_option_of_the_plugin_is_there_without_the_prefix(fake_pytest: FakePytest):
    for option in OPTIONS:
        if option.name not in ("api-key", "env-file", "only", "run"):
            words = [f"--{option.name}"] if option.flag else [f"--{option.name}", "7"]
            assert osmosis_eval(*words).exit_code == 0, option.name
            given = option.flag_name if option.flag else f"{option.flag_name}=7"
            assert given in fake_pytest.args


def test_quiet_and_debug_are_pytests_own_verbosity():
    assert "-q" in to_pytest_args({"quiet": True})
    assert "-vv" in to_pytest_args({"debug": True})


def test_what_follows_two_dashes_goes_to_pytest_untouched(fake_pytest: FakePytest):
    extra = ["-k", "row-3", "--json", "--", "--help"]
    assert osmosis_eval("-m", "a:b", "--", *extra).exit_code == 0
    assert fake_pytest.args == ["-p", "osmosis", "--osmosis-only", "--osmosis-agent=a:b", *extra]
    assert osmosis_eval("--", "data.jsonl").exit_code == 0
    assert fake_pytest.args == ["-p", "osmosis", "--osmosis-only", "data.jsonl"]


def test_the_status_is_pytests_own(fake_pytest: FakePytest):
    for fake_pytest.status in (0, 1, 2, 4, 5):
        assert osmosis_eval("-m", "a:b").exit_code == fake_pytest.status


def test_a_key_travels_in_the_environment_and_is_warned_about(fake_pytest: FakePytest):
    done = osmosis_eval("-m", "a:b", "--api-key", KEY)
    assert done.exit_code == 0
    assert done.output.count("warning: --api-key") == 1
    assert f"--osmosis-api-key-env={KEY_VARIABLE}" in fake_pytest.args
    assert fake_pytest.key == KEY
    assert KEY not in "".join([*fake_pytest.args, *fake_pytest.argv, done.output])
    assert KEY_VARIABLE not in os.environ


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--api-key", ""], "--api-key is empty"),
        (["--api-key", KEY, "--api-key-env", "NAME"], "give one of them"),
        (["-m", "a:b", "stray"], "unexpected argument 'stray'; what is meant for pytest goes"),
        (["-m", "a:b", "rubric"], "argument 'rubric'|'rubric' must be the first word"),
        (["--modle", "x"], "--model"),
        (["-m"], "requires an argument"),
        (["--pass", "0.5"], "No such option"),
        (["rubrik"], "No such command 'rubrik'"),
    ],
)
def test_wrong_use_is_status_2_and_says_what_to_do(
    words: list[str], sentence: str, fake_pytest: FakePytest
):
    done = osmosis_eval(*words)
    assert done.exit_code == 2
    assert any(part in done.output for part in sentence.split("|"))
    assert KEY not in done.output
    assert fake_pytest.args == []


def test_the_short_help_has_what_most_evaluations_need():
    shown = osmosis_eval("--help").output
    usual = "agent data eval-fn model base-url api-key-env n pass-threshold max-turns temperature"
    others = "max-tokens batch-size limit offset output gate html json help-all"
    for name in f"{usual} {others}".split():
        assert f"--{name}" in shown
    assert "--baseline" not in shown
    assert "\nRead results:\n" in shown
    assert len(shown.splitlines()) < 110


def test_the_whole_help_shows_options_and_subcommands():
    shown = osmosis_eval("--help-all").output
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    for option in OPTIONS:
        assert option.name == "only" or f"--{option.name}" in shown
    assert "--osmosis-" not in shown
    at = [shown.index(f"\n{title[0].upper()}{title[1:]}:\n") for title in GROUPS]
    assert at == sorted(at)
    assert "--retry-failed [=all]" in shown
    assert "8 when a gate is inconclusive" in " ".join(shown.split())


AGENT = """
from osmosis_ai.rollout import RolloutAgentLoop

class Asker(RolloutAgentLoop):
    name = "asker"
    def get_tools(self, request):
        return []
    async def run(self, ctx):
        print("the agent prints")
        answer = await ctx.chat(ctx.request.messages)
        return ctx.complete([*ctx.request.messages, answer.message])

agent_loop = Asker()

def always(solution_str, ground_truth, extra_info=None):
    return 1.0

def never(solution_str, ground_truth, extra_info=None):
    return 0.0
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    tmp_path = pytester.path
    (tmp_path / "server.py").write_text(AGENT)
    row = {"system_prompt": "Calculate.", "user_prompt": "What is 2 + 3?", "ground_truth": "5"}
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "test_ordinary.py").write_text("def test_ordinary():\n    assert False\n")
    return tmp_path


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """`osmosis eval` in this process, which forgets the project's modules afterwards."""
    monkeypatch.syspath_prepend(project)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as ended:
            main(["eval", *words])
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(words, ended.value.code, *capfd.readouterr())

    yield run
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(project)):
            del sys.modules[name]


def in_a_process(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plugins = {"PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:anyio"}  # they take seconds
    return subprocess.run(
        [sys.executable, "-m", "osmosis_cli", "eval", *words],
        capture_output=True, text=True, check=False, cwd=project, env={**os.environ, **plugins},
    )  # fmt: skip


ASKED = ("-m", "server:agent_loop", "-d", "data.jsonl", "--model", "embedded")


@pytest.mark.parametrize(("eval_fn", "status"), [("always", 0), ("never", 1)])
def test_an_evaluation_runs_and_nothing_else_of_the_project(
    command: Command, eval_fn: str, status: int
):
    done = command(*ASKED, "--eval-fn", f"server:{eval_fn}", "--n", "2")
    assert done.returncode == status, done.stdout + done.stderr
    assert ("2 passed" if status == 0 else "2 failed") in done.stdout
    assert "test_ordinary" not in done.stdout


@pytest.mark.slow
def test_a_dataset_of_the_ini_file_is_evaluated_alone(project: Path, command: Command):
    (project / "pytest.ini").write_text(
        "[pytest]\nosmosis_data = data.jsonl\nosmosis_agent = server:agent_loop\n"
        "osmosis_model = embedded\nosmosis_eval_fn = server:always\n"
    )
    done = command()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_ordinary" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eval_fn", "status", "output"),
    [("always", 0, []), ("never", 1, ["-o", "results.json"])],
    ids=["passed", "failed, with a file"],
)
def test_json_is_the_report_alone_on_stdout(
    project: Path, eval_fn: str, status: int, output: list[str]
):
    asked = (*ASKED, "--eval-fn", f"server:{eval_fn}", "--json", *output)
    done = in_a_process(project, *asked, "--", "-s")
    assert done.returncode == status, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["total_runs"] == 1
    assert "test session starts" in done.stderr
    named = [line.partition(": ")[2] for line in done.stderr.splitlines()
             if line.startswith(("report: ", "conversations: "))]  # fmt: skip
    assert named == (["results.json", "results.trajectories.jsonl"] if output else [])
    assert ".trajectories.jsonl" not in done.stderr or output
    if output:
        assert json.loads((project / "results.json").read_text()) == report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "osmosis eval needs a dataset"),
        (("-m", "server:agent_loop"), "osmosis eval needs a dataset: -d/--dataset FILE"),
        (("-m", "server:gone", "-d", "data.jsonl", "--model", "embedded"), "gone"),
        (
            ("-m", "server:agent_loop", "-d", "dta.jsonl", "--model", "embedded"),
            "dta.jsonl: no such file; did you mean 'data.jsonl'?",
        ),
        (
            ("-m", "server:agent_loop", "-d", "data.jsonl", "--model", "embeded"),
            "OPENAI_API_KEY is not set: export it, or name another variable with --api-key-env; "
            "without --base-url, 'embeded' is taken for a provider's: did you mean 'embedded'?",
        ),
        (("--mcp", "tools"), "-m/--agent MODULE:ATTR or --mcp DIR, and --model NAME"),
        (("--mcp", "tools", "-d", "data.jsonl", "--model", "embedded"), "--mcp 'tools': "),
        ((*ASKED, "--eval-fn", "server:always", "--n", "0"), "--n '0': expected"),
        ((*ASKED, "--", "--no-such-option"), "unrecognized arguments: --no-such-option"),
    ],
)
def test_what_the_evaluation_refuses_is_status_4(
    project: Path, command: Command, words: tuple[str, ...], part: str
):
    done = command(*words)
    assert done.returncode == 4
    assert part in done.stderr
    (project / "old.json").write_text('{"old": true}')
    at = words.index("--") if "--" in words else len(words)
    done = command(*words[:at], "--json", "-o", "old.json", *words[at:])
    assert (done.returncode, done.stdout) == (4, "")
    error = json.loads(done.stderr)["error"]
    assert part in error["message"]
    assert (error["code"], error["exit_code"]) == ("usage", 4)


@pytest.mark.slow
def test_what_pytest_and_its_workers_print_names_the_commands_options(
    command: Command, endpoint: Endpoint
):
    asked = ("-m", "server:agent_loop", "-d", "data.jsonl", "--model", "fault-401")
    url = ("--base-url", endpoint.base_url)
    done = command(*asked, *url, "--n", "2", "--batch-size", "2", "--", "-n2")
    printed = done.stdout + done.stderr
    assert done.returncode == 1 and "--api-key-env" in printed, printed
    assert "--osmosis-" not in printed
    printed = command(*asked, *url, "--api-key", KEY).stdout
    assert "--api-key was refused" in printed and KEY not in printed
    assert "OSMOSIS" not in printed and "pass-env" not in printed


@pytest.mark.parametrize("words", [("-n", "5"), ("-n5",), ("-n=5",)])
def test_an_n_with_one_dash_is_answered_with_both_that_may_be_meant(
    command: Command, words: tuple[str, ...]
):
    done = command(*ASKED, *words)
    assert done.returncode == 2
    assert "Did you mean --n? Options of pytest go last" in done.stderr and "-- -n" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tb=line"], "No such option '--tb'. Options of pytest go last, behind two dashes: "
                        "-- --tb"),
        (["-krow-3"], "-- -k"),
        (["-vv"], "-- -v"),
        (["--confidence", "0.9", "--co"], "-- --co"),
    ],
)  # fmt: skip
def test_an_option_of_pytest_is_answered_with_where_it_goes(
    command: Command, words: list[str], said: str
):
    done = command(*ASKED, *words)
    assert done.returncode == 2
    assert " ".join(done.stderr.split()).endswith(said), done.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [("--limti", "Did you mean --limit?"), ("--temprature", "Did you mean --temperature?")],
)
def test_another_unknown_option_is_answered_with_the_nearest(
    command: Command, word: str, said: str
):
    done = command(*ASKED, word, "3")
    assert done.returncode == 2
    assert said in done.stderr.replace("'", "") and "pytest go" not in done.stderr


@pytest.mark.slow
def test_no_row_to_run_is_status_5(command: Command):
    done = command(*ASKED, "--eval-fn", "server:always", "--offset", "9", "--json")
    assert (done.returncode, done.stdout) == (5, "")
    assert json.loads(done.stderr)["error"]["exit_code"] == 5
