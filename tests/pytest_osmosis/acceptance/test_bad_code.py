"""What is wrong with an agent or an eval function, as the session tells it."""

from __future__ import annotations

import os
import random
import signal
import sys

import pytest

from osmosis_ai.running import loop_thread
from tests.support.modes import each_mode
from tests.support.project import AGENT, Project

UNRULY = """
import asyncio
import logging
import os
import random
import signal
import sys
import threading
import time

import pytest

from osmosis_ai.rollout import RolloutAgentLoop

forever = threading.Event()


class Mute(Exception):
    def __str__(self):
        return self.not_there


class Agent(RolloutAgentLoop):
    name = "unruly"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        answer = await ctx.chat(messages)
        wish = answer.message["content"]
        if wish == "exit":
            sys.exit(3)
        if wish == "memory":
            raise MemoryError
        if wish == "mute":
            raise Mute
        if wish == "close":
            raise GeneratorExit
        if wish == "recursion":
            return self.run_down(ctx)
        if wish == "swallow":
            for _ in range(1000):
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    continue
        if wish == "cancelled":
            task = asyncio.create_task(asyncio.sleep(60))
            task.cancel()
            await task
        if wish == "cancel":
            asyncio.current_task().cancel()
        if wish == "skip":
            pytest.skip("not today")
        if wish == "folder":
            os.chdir("/")
            os.environ["PYTEST_CURRENT_TEST"] = "mine"
            random.seed(3)
            sys.stdout.close()
        if wish == "leave":
            asyncio.get_running_loop().create_task(asyncio.sleep(600))
            threading.Thread(target=forever.wait, daemon=True).start()
        if wish == "print":
            for _ in range(64):
                print("x" * 2**20)
                logging.getLogger("unruly").warning("y" * 2**16)
        return ctx.complete([*messages, answer.message])

    def run_down(self, ctx):
        return self.run_down(ctx)


agent_loop = Agent()


def exact(solution_str, ground_truth, extra_info):
    if solution_str == "score exit":
        sys.exit(4)
    if solution_str == "score mute":
        raise Mute
    if solution_str == "score close":
        raise GeneratorExit
    if solution_str == "score fail":
        pytest.fail("a bad answer")
    if solution_str == "score cancelled":
        raise asyncio.CancelledError
    if solution_str == "score hang":
        forever.wait()
    if solution_str == "score loop":
        until = time.monotonic() + 30
        while "OVER" not in os.environ and time.monotonic() < until:
            pass
    return 1.0
"""


@pytest.fixture
def unruly(project: Project) -> Project:
    project.write("unruly.py", UNRULY)
    return project


COSTS = {
    "exit": ("agent", "the agent called sys.exit(3)"),
    "memory": ("agent", "MemoryError"),
    "recursion": ("agent", "RecursionError"),
    "cancelled": ("agent", "the agent ended in CancelledError"),
    "cancel": ("agent", "the agent ended in CancelledError"),
    "skip": ("agent", "the agent raised Skipped: not today"),
    "mute": ("agent", "Mute: <exception str() failed>"),
    "close": ("agent", "the agent raised GeneratorExit"),
    "score mute": ("eval_fn", "`unruly:exact` raised Mute: <exception str() failed>"),
    "score close": ("eval_fn", "the call raised GeneratorExit"),
    "score fail": ("eval_fn", "`unruly:exact` raised Failed: a bad answer"),
    "score cancelled": ("eval_fn", "`unruly:exact` ended in CancelledError"),
    "swallow": ("timeout", "the agent ignored its cancellation and was left behind"),
    "score exit": ("eval_fn", "`unruly:exact` called sys.exit(4)"),
    "score hang": ("eval_fn", "`unruly:exact` timed out after "),
}
"""The error type of a row's run, and words of its error."""
if sys.version_info < (3, 11):
    del COSTS["cancel"]  # no task can tell


@pytest.mark.fault(
    "an eval function or an agent never returns",
    "an agent ignores its cancellation",
    "code calls `os._exit` or `sys.exit`, or raises KeyboardInterrupt",
    "memory runs out in an agent",
)
@each_mode
def test_unruly_code_costs_its_own_run_alone(
    unruly: Project, monkeypatch: pytest.MonkeyPatch, workers: int
):
    monkeypatch.setattr(loop_thread, "CANCEL_TIMEOUT_S", 0.1)  # in this process
    seconds = 4 if workers else 2
    unruly.rows(*(row for wish in COSTS for row in (wish, f"beside {wish}")))
    session = unruly.run(
        "--batch-size=4",
        f"--osmosis-agent-timeout={seconds}",
        f"--osmosis-grader-timeout={seconds}",
        agent="unruly:agent_loop",
        eval_fn="unruly:exact",
        workers=workers,
    )
    assert session.ret == 1
    assert "INTERNALERROR" not in session.out
    assert [run["error_type"] for run in session.runs[1::2]] == [None] * len(COSTS)
    for (wish, (error_type, words)), run in zip(COSTS.items(), session.runs[::2], strict=True):
        assert run["error_type"] == error_type, wish
        assert words in run["error"], wish


@pytest.mark.fault("an eval function or an agent never returns")
@pytest.mark.slow
def test_an_eval_function_that_spins_costs_its_own_run_alone(
    unruly: Project, monkeypatch: pytest.MonkeyPatch
):
    unruly.rows("a", "score loop", "b")
    session = unruly.run(
        "--osmosis-grader-timeout=1", agent="unruly:agent_loop", eval_fn="unruly:exact"
    )
    monkeypatch.setenv("OVER", "the thread that was left behind may end")
    assert [run["error_type"] for run in session.runs] == [None, "eval_fn", None]
    assert session.runs[1]["error"] == "`unruly:exact` timed out after 1 s"


@pytest.mark.fault("code prints or logs without end")
def test_what_is_printed_without_end_is_kept_by_its_beginning_and_end(unruly: Project):
    unruly.rows("print", {"user_prompt": "a", "ground_truth": "b"})
    session = unruly.run("-rP", "--junitxml=out.xml", agent="unruly:agent_loop")
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert len(session.out) < 500_000
    assert (unruly.path / "out.xml").stat().st_size < 1_000_000


@pytest.mark.fault(
    "code changes the working directory, the environment or the random state",
    "code leaves tasks or threads behind",
)
def test_what_code_does_to_its_process_does_not_move_the_reports(unruly: Project):
    before, state = os.getcwd(), random.getstate()
    unruly.rows("folder", "leave", "a")
    session = unruly.run(agent="unruly:agent_loop")
    assert session.outcomes == {"passed": 3}
    assert len(session.runs) == 3
    assert os.getcwd() == before
    random.setstate(state)


@pytest.mark.fault("code calls `os._exit` or `sys.exit`, or raises KeyboardInterrupt")
@pytest.mark.slow
def test_an_interrupt_raised_by_an_agent_interrupts_the_session_once(project: Project):
    project.write(
        "agent.py",
        AGENT.replace(
            "return explode(", "raise KeyboardInterrupt\n            return (lambda x: x)("
        ),
    )
    project.rows("a", "raise", "b")
    handler = signal.getsignal(signal.SIGINT)
    session = project.apart(*project.options("-n0"))
    assert signal.getsignal(signal.SIGINT) is handler
    assert session.ret == 2
    assert session.report["summary"]["interrupted"] == "SIGINT"
    errors = [run["error"] for run in session.runs]  # the third may have ended meanwhile
    assert errors[:2] == [None, "the agent raised KeyboardInterrupt"]
    kept = (project.path / "out.trajectories.jsonl").read_text()
    assert "agent.py" in kept and kept.count("raise KeyboardInterrupt") == 1  # the agent's frames
    shown = session.out + session.err  # where its item was reported before the session ended
    assert shown.count("Traceback") == shown.count("raise KeyboardInterrupt") <= 1
    assert "INTERNALERROR" not in session.out + session.err


@pytest.mark.slow
def test_what_was_left_behind_is_not_reported_again_when_the_session_ends(unruly: Project):
    unruly.rows("a", "swallow")
    code = {"agent": "unruly:agent_loop", "eval_fn": "unruly:exact"}
    session = unruly.apart(*unruly.options("-n0", "--osmosis-agent-timeout=1", **code))
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert "was destroyed" not in session.out + session.err


ODD = """
import sys


class Closed:
    def __repr__(self):
        raise RuntimeError("detached")


class Index:
    def __index__(self):
        return 3


class Torn(dict):
    def items(self):
        raise LookupError("no items")


class Text(str):
    def __len__(self):
        raise ValueError("no length")


class Leaving(Exception):
    def __str__(self):
        sys.exit(5)


class Caused(Exception):
    def __str__(self):
        return Text("odd")

    @property
    def __cause__(self):
        raise ValueError("no cause")


class Unclassed(Exception):
    @property
    def __class__(self):
        raise ValueError("no class")


async def agent(ctx):
    question = list(ctx.request.messages)
    answer = await ctx.chat(question)
    result = ctx.complete([*question, answer.message], reward=1.0)
    match answer.message["content"]:
        case "repr":
            result.final_messages[-1]["handle"] = Closed()
        case "index":
            result.metrics.num_tool_calls = Index()
        case "float":
            result.metrics.num_tool_calls = 2.5
        case "metrics":
            result.metrics = "none"
        case "error":
            result.status, result.error_message = "ERROR", ValueError("the tool broke")
        case "torn":
            result.final_messages[-1] = Torn(answer.message)
        case "leaving":
            raise Leaving
        case "caused":
            raise Caused
        case "unclassed":
            raise Unclassed
    return result
"""


@each_mode
def test_odd_values_and_errors_of_an_agent_cost_no_other_run(project: Project, workers: int):
    project.write("odd.py", ODD)
    odd = ("repr", "index", "float", "metrics", "error", "torn", "leaving", "caused", "unclassed")
    project.rows("a", *odd, "b")
    session = project.run("--batch-size=2", agent="odd:agent", eval_fn=None, workers=workers)
    assert session.ret == 1
    assert [run["outcome"] for run in session.runs] == [
        *["passed"] * 3, *["raised"] * 3, "error", *["raised"] * 2, "error", "passed"
    ]  # fmt: skip
    assert session.runs[2]["tool_calls"] == 3
    returned = "OsmosisValidationError: agent returned metrics.num_tool_calls"
    assert [run["error"] for run in session.runs[3:10]] == [
        f"{returned} 2.5; expected a whole number",
        f"{returned} None; expected a whole number",
        "the tool broke",
        "the run has no record: LookupError: no items",
        "Leaving: <exception str() failed>",
        "Caused: odd",
        "the run has no record: ValueError: no class",
    ]
    assert project.endpoint.requests == 11


RETURNING = """
import asyncio

begun, ended = asyncio.Event(), asyncio.Event()


async def agent(ctx):
    if ctx.request.metadata["row_index"] == 0:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await begun.wait()
        ended.set()
    else:
        begun.set()
        await ended.wait()
        await asyncio.sleep(0.01)
    return ctx.complete(ctx.request.messages, reward=1.0)
"""


@pytest.mark.slow
def test_an_agent_that_ends_after_it_was_left_behind_changes_no_result(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loop_thread, "CANCEL_TIMEOUT_S", 0.01)
    project.write("returning.py", RETURNING)
    project.rows("a", "b")
    session = project.run(
        "--osmosis-agent-timeout=1", agent="returning:agent", eval_fn=None, workers=0
    )
    assert [run["error_type"] for run in session.runs] == ["timeout", None]
    assert "was left behind" in session.runs[0]["error"]


APPENDING = """
import asyncio


async def append(messages):
    while True:
        await asyncio.sleep(0)
        messages.append({"role": "assistant", "content": "late"})


async def agent(ctx):
    messages = list(ctx.request.messages)
    answer = await ctx.chat(messages)
    messages.append(answer.message)
    asyncio.create_task(append(messages))
    return ctx.complete(messages)


async def first(messages, ground_truth, metadata):
    await asyncio.sleep(0.01)
    return float(len(messages))


async def second(messages, ground_truth, metadata):
    return float(len(messages))
"""


def test_what_a_task_appends_after_the_agents_end_is_not_of_the_run(project: Project):
    project.write("appending.py", APPENDING)
    project.rows("a")
    session = project.run(
        "--eval-fn=appending:second", agent="appending:agent", eval_fn="appending:first"
    )
    assert session.runs[0]["answer"] == "a"
    assert session.runs[0]["scores"] == {"appending:first": 3.0, "appending:second": 3.0}


LEAVING = """
import asyncio

left = []


async def look_up(ctx):
    await ctx.chat([{"role": "user", "content": "late"}])


async def agent(ctx):
    answer = await ctx.chat(list(ctx.request.messages))
    if answer.message["content"] == "a":
        left.append(asyncio.create_task(look_up(ctx)))
        await asyncio.sleep(0)
    return ctx.complete([*ctx.request.messages, answer.message], reward=1.0)
"""


@pytest.mark.fault("code leaves tasks or threads behind")
@each_mode
def test_a_warning_names_a_task_that_was_left_behind_in_a_model_call(
    project: Project, workers: int
):
    project.write("leaving.py", LEAVING)
    project.rows("a", "b")
    session = project.run("--batch-size=2", agent="leaving:agent", eval_fn=None, workers=workers)
    assert session.outcomes == {"passed": 2, "warnings": 1}
    assert [run["llm_calls"] for run in session.runs] == [1, 1]
    message = "\n".join(session.section("warnings summary"))
    assert "leaving.py:7: CallLeftBehind: leaving:agent: `look_up` still waited for" in message


WARNING = """
import asyncio
import warnings
from pathlib import Path


async def agent(ctx):
    if ctx.request.metadata["row_index"] == 1:
        while not Path("between").exists():
            await asyncio.sleep(0.01)
        try:
            warnings.warn("mind the gap")
        finally:
            Path("warned").touch()
    return ctx.complete(ctx.request.messages, reward=1.0)
"""
BETWEEN = """
import time
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    yield
    if item.name.startswith("row-0"):
        Path("between").touch()
        while not Path("warned").exists():
            time.sleep(0.01)
    return True
"""


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_code_warns_of_between_two_items_is_reported(project: Project, workers: int):
    project.write("warning.py", WARNING)
    project.write("conftest.py", BETWEEN)
    project.rows("a", "b")
    words = "-Wdefault", "--batch-size=2"
    session = project.run(*words, agent="warning:agent", eval_fn=None, workers=workers)
    assert session.outcomes == {"passed": 2, "warnings": 1}
    assert "mind the gap" in session.out


@pytest.mark.slow
@each_mode
def test_half_a_character_in_what_code_says_ends_no_session(project: Project, workers: int):
    project.write(
        "rewards.py",
        """
import logging, warnings

def exact(solution_str):
    print("printed \\udce9")
    logging.getLogger().warning("logged \\udce9")
    warnings.warn("warned \\udce9")
    return {"score": 0.0, "reason": "reason \\udce9"}
""",
    )
    project.rows("a", "b")
    # Apart: what is logged in this process is in the report of this test too.
    options = project.options(f"-n{workers}", "-Wdefault", "--junitxml=out.xml")
    session = project.apart(*options)
    assert session.ret == 1
    assert session.outcomes["failed"] == 2
    for said in ("printed", "logged", "warned"):
        assert rf"{said} \udce9" in session.out
    assert "reason \ufffd" in session.out
    properties = session.junit.findall(".//testcase/properties/property")
    assert [each.get("value") for each in properties].count("reason \ufffd") == 2


def test_an_errors_control_characters_are_escaped_in_the_short_summary_too(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    project.write(
        "rewards.py",
        "def exact(solution_str, ground_truth):\n    raise ValueError('a\\0\\x1b[31mb\\x9bc')\n",
    )
    project.rows("one", "two")
    session = project.run("--tb=no", "-rfE")
    assert "ValueError: a\\x00\\x1b[31mb\\x9bc" in session.out
    assert not {"\0", "\x1b", "\x9b"} & set(session.out)
    assert "ground truth" not in session.out  # no section


LOOPS = """
import asyncio


class Client:
    # belongs to the event loop of its first call, as the connections of asynchronous clients do
    loop = None

    async def ask(self, question):
        self.loop = self.loop or asyncio.get_running_loop()
        try:
            if self.loop.is_closed():
                raise RuntimeError("Event loop is closed")
        except RuntimeError as error:
            raise ConnectionError("Connection error.") from error
        return question


client = Client()


def agent(question):
    return asyncio.run(client.ask(question))


class Agent:
    def __init__(self):
        self.client = Client()

    def __call__(self, question):
        return asyncio.run(self.client.ask(question))


def old(question):
    return asyncio.get_event_loop().run_until_complete(client.ask(question))


async def nested(question):
    return asyncio.run(client.ask(question))
"""


@pytest.mark.fault("a client of the module is bound to another event loop")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_object_that_belongs_to_another_loop_is_said_to_be_shared(project: Project):
    project.write("app.py", LOOPS)
    project.rows("a", "b")
    own = {"model": None, "base_url": None}
    session = project.run(agent="app:agent", **own)
    assert session.outcomes == {"passed": 1, "failed": 1}
    error = session.runs[1]["error"]
    assert session.runs[1]["error_type"] == "agent"
    assert error.startswith(
        "ConnectionError: Connection error. (RuntimeError: Event loop is closed); likely cause: "
    )
    assert "--batch-size 1" in error and "a class" in error
    section = session.out[session.out.index("= FAILURES =") :].splitlines()
    assert section[2].startswith("RuntimeError: Event loop is closed (raised as ConnectionError")
    assert project.run(agent="app:Agent", **own).outcomes == {"passed": 2}
    session = project.run(agent="app:old", **own)
    assert "declare the agent `async def` and await" in session.runs[0]["error"]
    session = project.run(agent="app:nested", **own)
    assert "declare the agent `def`, which runs in a thread" in session.runs[0]["error"]


HANGS = """
import os
import threading

def fetch():
    threading.Event().wait()

if os.environ.get("PYTEST_XDIST_WORKER") or {in_controller}:
    fetch()

def agent(question):
    return question
"""


def hanging(project: Project, *, in_controller: bool) -> str:
    """Write an agent whose import never ends; return where a message says that it is."""
    path = project.write("hangs.py", HANGS.format(in_controller=in_controller))
    project.rows("a")
    return f'File "{path}", line 6, in fetch\n    threading.Event().wait()'


@pytest.mark.fault("an import never ends")
@pytest.mark.parametrize("where", ["option", "ini", "eval function", "marked"])
def test_an_import_that_hangs_ends_the_session_with_its_line(project: Project, where: str):
    place = hanging(project, in_controller=True)
    words = ["--osmosis-data=data.jsonl", "--osmosis-import-timeout=0.2"]
    if where == "ini":
        words.pop()
        project.write("pytest.ini", "[pytest]\nosmosis_import_timeout = 0.2\n")
    if where == "eval function":
        words += ["--osmosis-agent=agent:agent_loop", "--osmosis-model=m", "--eval-fn=hangs:agent"]
    elif where == "marked":
        mark = "@pytest.mark.osmosis(agent='hangs:agent', data='data.jsonl')"
        test = f"import pytest\n\n{mark}\ndef test_it(rollout): ...\n"
        words[0] = str(project.write("test_it.py", test))
    else:
        words += ["--osmosis-agent=hangs:agent", "--eval-fn=exact"]
    session = project.plain(*words)
    said = session.out if where == "marked" else session.mistake
    message = (
        "the import of 'hangs' was not done after 0.2 s (--osmosis-import-timeout gives it more"
    )
    assert session.ret == (2 if where == "marked" else 4), session.out
    assert message in said and place in said
    assert "threading.py" not in said and "Traceback" not in said


@pytest.mark.slow
@pytest.mark.fault("an import never ends")
def test_an_import_that_hangs_in_workers_alone_is_one_message(project: Project):
    place = hanging(project, in_controller=False)
    words = "--osmosis-agent=hangs:agent", "--eval-fn=exact", "--osmosis-data=data.jsonl", "-n2"
    session = project.plain(*words, "--osmosis-import-timeout=1")
    assert session.ret == 4
    assert session.mistake.startswith("worker gw") and place in session.mistake
    assert "Traceback" not in session.out + session.err
    alone = project.plain(*words[:-1], "--osmosis-import-timeout=0")
    assert alone.ret == 0
