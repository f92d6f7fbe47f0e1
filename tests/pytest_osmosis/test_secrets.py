"""A secret of every origin is carried to every sink, in every spelling, and leaves by none."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click
import pytest

from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.faults import Wording
from osmosis_ai.secret import MASK, Redactor, Secret, mask_everywhere
from osmosis_cli.errors import CommandError, run
from osmosis_cli.eval.lines import say, say_facts, say_table
from osmosis_cli.serve.server import LogFormatter
from osmosis_cli.shared_options import print_json, write_json
from osmosis_platform.execution.outcome import take_conversations
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.tail import TailedFile
from pytest_osmosis.reports.saved_conversations import beside
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.session.environment import command_line
from pytest_osmosis.storage.run_lines import run_lines
from tests.support import report_page
from tests.support.endpoints import Ask, Endpoint, error_reply, tool_call
from tests.support.modes import N2
from tests.support.project import NO_NEIGHBOURS, Folder, Project

ORIGINS = (
    "option", "variable", "name of the variable", "body", "header", "query",
    "password", "connection",
)  # fmt: skip
"""Where a session has a secret from."""
VALUES = {
    origin: f'sk/{origin[:3]}+"{sha256(origin.encode()).hexdigest()[:16]}' for origin in ORIGINS
}


def spellings(value: str) -> list[str]:
    encoded = base64.b64encode(value.encode()).decode()
    return [value, json.dumps(value)[1:-1], quote(value, safe=""), encoded]


def pieces(value: str) -> list[str]:
    """Return what shows that some of a secret is there: its characters, and how it begins."""
    encoded = base64.b64encode(value.encode()).decode()
    return [value[:6], value[-12:-2], encoded[:8], encoded[-14:-4]]


EVERYTHING = " ".join(text for value in VALUES.values() for text in spellings(value))
CARRIERS = {
    "a row": 1, "a prompt": 1, "an answer": 4, "a refusal": 4, "a tool": 4, "output": 100,
    "a log": 1, "a warning": 1, "an event": 1, "an exception": 4, "an error": 4, "a score": 4,
    "a reason": 4, "a judge": 4, "a test": 4, "a test's reason": 4, "a test's output": 4,

}  # fmt: skip
"""What holds the secrets, and how often: texts that are cut must not be cut within one."""


def carried(carrier: str) -> str:
    return f"{carrier} has {f'{EVERYTHING} ' * CARRIERS[carrier]}"


AGENT = """
import logging
import warnings

from carried import TEXTS, URL
from osmosis_ai.rollout import RolloutAgentLoop
from osmosis_ai.rubric.reasons import add_reason
from osmosis_ai import scorers

carried = TEXTS.__getitem__


class Agent(RolloutAgentLoop):
    name = "talker"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        print(carried("output"))
        logging.warning("there: %s", carried("a log"))
        warnings.warn(carried("a warning"))
        ctx.log_event("note", said=carried("an event"))
        messages = list(ctx.request.messages)
        wish = messages[-1]["content"].split()[0]
        if wish == "raise":
            raise LookupError(carried("an exception"))
        if wish == "report":
            return ctx.error(carried("an error"))
        messages.append((await ctx.chat(messages)).message)
        if wish == "tools":
            messages.append(
                {"role": "tool", "tool_call_id": "call_1", "content": carried("a tool")}
            )
            messages.append((await ctx.chat(messages)).message)
        return ctx.complete(messages)


def graded(solution_str, ground_truth, extra_info):
    if ground_truth.startswith("unscored"):
        raise ValueError(carried("a score"))
    add_reason(carried("a reason"))
    return 0.0


judged = scorers.judge("Is it good?", model="openai/judge", api_base=URL)
agent_loop = Agent()
"""
TEST = """
from agent import carried
from pytest_osmosis import Rollout, osmosis


@osmosis(agent="agent:agent_loop", data="marked.jsonl", model="m")
def test_marked(rollout: Rollout) -> None:
    print(carried("a test's output"))
    rollout.record_score("own", 0.0, reason=carried("a test's reason"))
    seen = carried("a test")
    assert rollout.messages == seen
"""
CONFTEST = """
import json
import os

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(report):
    data = yield
    with open(f"sent-{os.getpid()}.txt", "a") as file:
        print(json.dumps(data), file=file)
    return data
"""
FILES = {
    "terminal": "", "JSON": "out.json", "JUnit": "out.xml", "Markdown": "out.md",
    "HTML": "out.html", "table": "out.csv", "conversations": "out.trajectories.jsonl",
    "run store": ".osmosis/", "events": "debug/", "recorded calls": "calls/", "log": "pytest.log",
    "workers": "sent-", "GitHub": "summary.md",
}  # fmt: skip
"""Sinks, and how the names of their files begin."""


def answer(ask: Ask) -> Any:
    if ask.model == "judge":
        return json.dumps({"score": 0.0, "explanation": carried("a judge")})
    if ask.row.startswith("refuse"):
        return [error_reply(400, carried("a refusal"))]
    if ask.row.startswith("tools") and len(ask.messages) < 3:
        return tool_call("look", {"at": carried("a tool")})
    return carried("an answer")


class Evaluated(NamedTuple):
    workers: int
    texts: Mapping[str, str]
    """By sink."""


@pytest.fixture(scope="module", params=[pytest.param(0, id="one_process"), N2])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """What a session with a secret of every origin printed and wrote."""
    with Endpoint(answer) as endpoint, pytest.MonkeyPatch.context() as patch:
        folder = Folder(tmp_path_factory.mktemp("project"), endpoint)
        known = {carrier: carried(carrier) for carrier in CARRIERS}
        folder.write("carried.py", f"TEXTS = {known!r}\nURL = {endpoint.base_url!r}\n")
        folder.write("agent.py", AGENT)
        folder.write("test_marked.py", TEST)
        folder.write("conftest.py", CONFTEST)
        more = {
            "said": carried("a row"),
            "tags": [carried("a row")],
            "system_prompt": carried("a prompt"),
        }
        wishes = ("say", "raise", "report", "refuse", "tools", "unscored")
        rows = [{"user_prompt": f"{wish} it", "ground_truth": wish, **more} for wish in wishes]
        folder.rows(*rows)
        folder.rows(rows[0], name="marked.jsonl")
        own = {*folder.path.rglob("*")}
        variables = {
            "PYTEST_ADDOPTS": NO_NEIGHBOURS,
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(folder.path / "summary.md"),
            "OPENAI_API_KEY": VALUES["variable"],
            "OSMOSIS_SECRET_NAMES": "ANYTHING",
            "ANYTHING": VALUES["name of the variable"],
            "TEAM_LOGIN": VALUES["header"],
            "PGPASSWORD": VALUES["password"],
            "STORE": f"postgresql://app:{quote(VALUES['connection'], safe='')}@db/app",
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        done = folder.evaluate(
            *folder.options(
                f"-n{request.param}", "data.jsonl", "test_marked.py", "--osmosis-run=always",
                f"--osmosis-api-key={VALUES['option']}", "--osmosis-header=X-Team=$TEAM_LOGIN",
                f"--osmosis-extra-body={json.dumps({'a': {'api_key': VALUES['body']}})}",
                "--osmosis-by=said", "--osmosis-markdown=out.md", "--osmosis-html=out.html",
                "--osmosis-runs-table=out.csv", "--osmosis-trajectories=out.trajectories.jsonl",
                "--osmosis-debug-dir=debug", "--osmosis-record=calls", "--junitxml=out.xml",
                "--log-file=pytest.log", "--log-level=DEBUG", "-rA", "-l", "-vv", "-Wdefault",
                "-pno:cacheprovider",
                "-o", "junit_logging=all", eval_fn="agent:graded",
                base_url=f"{endpoint.base_url}?key={quote(VALUES['query'], safe='')}",
            ),
            "--osmosis-eval-fn=agent:judged",
        )  # fmt: skip
        found = defaultdict(str, terminal=done.out + done.err)
        for path in {*folder.path.rglob("*")} - own:
            name = str(path.relative_to(folder.path))
            if path.is_file() and "__pycache__" not in path.parts:
                [sink] = [sink for sink, begin in FILES.items() if begin and name.startswith(begin)]
                found[sink] += report_page.text_of(path)
    return Evaluated(request.param, found)


@pytest.mark.fault(
    "a key finds its way into an answer, an error, a log or the output",
    "an answer or an error quotes the key",
    "a traceback shows arguments and locals",
    "the provider echoes the key",
    "loggers run at DEBUG",
)
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("sink", FILES)
def test_no_secret_leaves(session: Evaluated, sink: str, origin: str) -> None:
    assert [piece for piece in pieces(VALUES[origin]) if piece in session.texts[sink]] == []


IN_RESULTS = {
    "a judge", "a reason", "a refusal", "a score", "an answer", "an error", "an exception",
}  # fmt: skip
IN_MESSAGES = {"a prompt", "a tool"}
IN_SUMMARY = IN_RESULTS | IN_MESSAGES | {"a row", "a test"}
ARRIVES = {
    "terminal": IN_RESULTS | IN_MESSAGES
    | {"a log", "a test", "a test's output", "a test's reason", "a warning", "output"},
    "JSON": IN_RESULTS | {"a row", "a test's reason"},
    "JUnit": IN_RESULTS | IN_MESSAGES | {"a log", "a test", "a test's output", "output"},
    "Markdown": IN_SUMMARY,
    "HTML": IN_RESULTS | IN_MESSAGES | {"a row", "a test's reason"},
    "table": IN_RESULTS | {"a row", "a test's reason"},
    "conversations": IN_RESULTS | IN_MESSAGES,
    "run store": IN_RESULTS | IN_MESSAGES | {"a test's reason"},
    "events": {"an event"},
    "recorded calls": IN_MESSAGES | {"a judge", "a refusal", "an answer"},
    "log": {"a log"},
    "GitHub": IN_SUMMARY,
}  # fmt: skip
"""What carries a secret to which sink: what never arrives there proves nothing."""
SENT = {
    "a judge", "a log", "a prompt", "a reason", "a test", "a test's output", "a test's reason",
    "an answer", "output",
}  # fmt: skip


@pytest.mark.parametrize("sink", FILES)
def test_what_carries_a_secret_arrives_masked(session: Evaluated, sink: str) -> None:
    text = session.texts[sink]
    found = {carrier for carrier in CARRIERS if f"{carrier} has " in text}
    expected = ARRIVES.get(sink, SENT if session.workers else set())
    assert found == expected
    assert not expected or text.count(MASK) >= len(EVERYTHING.split())


# ---- sinks of other programs, and those that one session does not reach

KEY = VALUES["variable"]


def logged(text: str, handler: logging.StreamHandler[io.StringIO]) -> str:
    logger = logging.Logger("any")
    logger.addHandler(handler)
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("it says %s", text)
    return handler.stream.getvalue()


def of_log_of_servers(text: str, folder: Path) -> str:
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(LogFormatter(Redactor([Secret(KEY)])))
    return logged(text, handler)


def of_message_of_a_shard(text: str, folder: Path) -> str:
    said = [{"role": "user", "content": text}, {"role": "assistant", text: [text]}]
    result = RunResult("data", 0, 0, success=True)
    calls, reasons = [{"id": text}], {"exact": [text]}
    record = RolloutRecord(result, text, said, text, calls=calls, reasons=reasons)
    return run_lines(record).decode()


def of_command_line(text: str, folder: Path) -> str:
    return command_line(["-k", text])


def of_error_of_a_call(text: str, folder: Path) -> str:
    wording = Wording(where="host", origin="host", model="m", key_name="KEY", timeout_s=1.0)
    faults = [
        CallFault("bad_request", text, status=400),
        CallFault("protocol", text, summary=text),
    ]
    return "".join(wording.of_fault(fault, Redactor([Secret(KEY)])) for fault in faults)


def of_lines_of_the_command(text: str, folder: Path) -> str:
    with redirect_stdout(io.StringIO()) as out:
        say(text, (text, "bad"))
        say_table([["name", "value"], ["a", text]])
        say_facts({"a": text})
    return out.getvalue()


def of_errors_of_the_command(text: str, folder: Path) -> str:
    @click.command()
    @click.option("--json", is_flag=True)
    def fail(json: bool) -> None:
        raise CommandError(text, details={"why": text})

    with redirect_stderr(io.StringIO()) as err:
        assert [run(fail, words) for words in ([], ["--json"])] == [1, 1]
    return err.getvalue()


def of_output_of_a_platforms_run(text: str, folder: Path) -> str:
    path = folder / "output"
    path.write_text(f"{text}\n{text}")
    TailedFile(path).mask(Redactor([Secret(KEY)]))
    return path.read_text()


def of_conversations_of_a_platforms_run(text: str, folder: Path) -> str:
    run_folder = RunFolder(folder / "runs" / "1")
    written = beside(run_folder.report)
    written.parent.mkdir(parents=True)
    written.write_text(json.dumps({"said": text}) + "\n")
    take_conversations(run_folder, Redactor([Secret(KEY)]))
    return run_folder.conversations.read_text()


SINKS: list[Callable[[str, Path], str]] = [
    of_log_of_servers, of_message_of_a_shard, of_command_line, of_error_of_a_call,
    of_lines_of_the_command, of_errors_of_the_command, of_output_of_a_platforms_run,
    of_conversations_of_a_platforms_run,
]  # fmt: skip


@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: sink.__name__)
@pytest.mark.parametrize("spelling", range(4))
def test_no_sink_lets_a_key_out(
    sink: Callable[[str, Path], str], spelling: int, tmp_path: Path
) -> None:
    mask_everywhere(Secret(KEY))
    found = sink(f"before {spellings(KEY)[spelling]} after", tmp_path)
    assert MASK in found and "before" in found and "after" in found
    assert not [piece for piece in pieces(KEY) if piece in found]


@pytest.mark.parametrize(
    ("row", "options"),
    [
        ({KEY: "a"}, []),
        ({"user_prompt": "a"}, [f"--osmosis-map=x={KEY}"]),
        ({"user_prompt": "a"}, [f"--osmosis-gate=mean >= 0 @ {KEY}"]),
        ({"user_prompt": "a"}, [f"--osmosis-data={KEY.replace('/', '-')}"]),
        # Not known as a secret, but it may be one.
        ({"user_prompt": "a"}, ['--osmosis-extra-body={"api_key": "sk-of-nobody"']),
    ],
)
def test_a_mistake_is_reported_without_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch, row: dict[str, str], options: list[str]
) -> None:
    monkeypatch.setenv("PGPASSWORD", KEY)
    monkeypatch.setenv("SHORTER_PASSWORD", KEY.replace("/", "-"))
    project.rows(row)
    session = project.run(*options)
    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert not [piece for piece in (*pieces(KEY), "sk-of-nobody") if piece in session.err]


@pytest.mark.parametrize("shown", ["-l", "--full-trace"])
def test_an_internal_error_is_reported_without_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    monkeypatch.setenv("PGPASSWORD", KEY)
    project.rows("a")
    project.write(
        "conftest.py",
        f"def pytest_osmosis_run_result(result):\n    key = {KEY!r}\n    raise RuntimeError(key)\n",
    )
    session = project.run(shown)
    assert session.ret == pytest.ExitCode.INTERNAL_ERROR
    text = session.out + session.err
    assert f"RuntimeError: {MASK}" in text
    assert not [piece for piece in pieces(KEY) if piece in text]


def test_a_command_prints_and_writes_no_secret_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    @click.command()
    def tell() -> None:
        say(f"there is {KEY}")
        print_json({"numbers": (1, 2.5), KEY: [(KEY, None)]})
        write_json(tmp_path / "out.json", {"said": KEY})
        raise CommandError(KEY)

    monkeypatch.setenv("PGPASSWORD", KEY)
    assert run(tell, []) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"there is {MASK}", f'{{"numbers": [1, 2.5], "{MASK}": [["{MASK}", null]]}}'
    ]  # fmt: skip
    assert printed.err == f"Error: {MASK}\n"
    assert json.loads((tmp_path / "out.json").read_text()) == {"said": MASK}
