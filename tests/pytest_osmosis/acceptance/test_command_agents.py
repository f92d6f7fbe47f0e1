"""Programs as agents: what they are given, how their output is read, and how they end."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.user_code.agent import AgentFailed
from pytest_osmosis.user_code.child_process import MAX_STDOUT, Program, TooMuchOutput
from pytest_osmosis.user_code.command import read_printed
from tests.support.endpoints import error_reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session

KEY = "sk-provider/0123456789+abcdef"
CLIENT = """
import json
import os
import sys
from urllib.request import Request, urlopen

request = json.load(sys.stdin)


def asked(messages):
    call = Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "any", "messages": messages}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urlopen(call) as reply:
        return json.load(reply)["choices"][0]["message"]


"""


def command(project: Project, body: str) -> str:
    """The agent option for a Python program with a client."""
    project.write("program.py", CLIENT + body)
    return f"cmd:{shlex.join([sys.executable, '-S', '-E', 'program.py'])}"


def run(project: Project, body: str, *more: str, **replaced: Any) -> Session:
    agent = command(project, body)
    return project.run(*more, **{"agent": agent, **replaced})


CHILD = """subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])"""
ANSWER = 'print(asked(request["messages"])["content"])'


def test_the_request_comes_on_standard_input(project: Project):
    project.rows({"user_prompt": "a", "ground_truth": "g", "topic": "sums", "id": "first"})
    body = 'open("seen.json", "w").write(json.dumps([request, os.environ["OSMOSIS_ROLLOUT_ID"]]))'
    run(project, body + "\nprint('x')", "--osmosis-temperature=0.5", "--osmosis-seed=7")
    request, rollout_id = json.loads((project.path / "seen.json").read_text())
    assert request == {
        "rollout_id": rollout_id,
        "messages": [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "a"},
        ],
        "metadata": {
            "topic": "sums",
            "id": "first",
            "row_index": 0,
            "run_index": 0,
            "execution_mode": "eval",
            "ground_truth": "g",
        },
        "completion_params": {"temperature": 0.5, "seed": 7},
        "max_turns": 10,
    }
    assert rollout_id == "eval-0-run-0"


def test_a_grader_judges_a_program_too(project: Project):
    project.rows("a")
    project.write(
        "graders.py",
        "from osmosis_ai.rollout import Grader\n\n"
        "class Exact(Grader):\n"
        "    async def grade(self, ctx):\n"
        "        assert len(ctx.sample.trajectory_messages) == 3\n"
        "        ctx.set_reward(ctx.sample.messages[-1]['content'] == ctx.label)\n",
    )
    assert run(project, ANSWER, eval_fn=None, grader="graders:Exact").outcomes == {"passed": 1}


FAILING = """
wish = request["messages"][-1]["content"]
if wish == "fail":
    sys.stderr.write("no such tool: añadir\\n")
    sys.exit(3)
if wish == "kill":
    os.kill(os.getpid(), 9)
print(asked(request["messages"])["content"])
"""


def test_how_a_program_has_failed_is_reported(project: Project):
    project.endpoint.answers = lambda ask: (
        [error_reply(400, "too long")] if ask.row == "refused" else ask.row
    )
    project.rows("fail", "kill", "refused", "unscored")
    session = run(project, FAILING, eval_fn=None)
    assert session.outcomes == {"failed": 3, "errors": 1}
    failed, killed, refused, unscored = session.runs
    assert failed["error_type"] == "agent"
    assert failed["error"].endswith("ended with status 3:\nno such tool: añadir")
    assert "Captured stderr rollout" in session.out
    assert "was ended by SIGKILL" in killed["error"]
    assert (refused["error_type"], refused["error_kind"]) == ("agent", "bad_request")
    assert 'print {"messages": [...], "reward": ...}' in unscored["error"]


@pytest.mark.slow
@each_mode
def test_a_timeout_ends_the_program_and_all_its_children(project: Project, workers: int):
    project.rows("a")
    body = (
        "import subprocess\n"
        f"child = {CHILD}\n"
        'open("pids", "w").write(f"{os.getpid()} {child.pid}")\n'
        'sys.stderr.write("waiting\\n"); sys.stderr.flush()\n'
        "child.wait()\n"
    )
    session = run(project, body, agent_timeout="3", workers=workers)
    assert session.outcomes == {"failed": 1}
    assert session.runs[0]["error_type"] == "timeout"
    assert "waiting" in session.out
    for pid in (project.path / "pids").read_text().split():
        assert ended(int(pid))


def test_children_that_are_left_behind_end_with_the_program(project: Project):
    project.rows("a")
    body = f'import subprocess\nchild = {CHILD}\nopen("pids", "w").write(str(child.pid))\n' + ANSWER
    assert run(project, body).outcomes == {"passed": 1}
    assert ended(int((project.path / "pids").read_text()))


def test_a_child_that_leaves_the_group_is_not_waited_for(project: Project):
    project.rows("a")
    body = (
        "import subprocess\n"
        f"child = {CHILD[:-1]}, start_new_session=True)\n"
        'open("pids", "w").write(str(child.pid))\n' + ANSWER
    )
    try:
        assert run(project, body, agent_timeout="60").outcomes == {"passed": 1}
    finally:
        os.kill(int((project.path / "pids").read_text()), signal.SIGKILL)


def ended(pid: int) -> bool:
    """Whether a process has ended, at the latest when it was waited for; zombies have."""
    for _ in range(6000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.fault("an agent starts programs")
@pytest.mark.slow
@each_mode
def test_the_providers_key_is_not_in_its_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: int
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THE_SAME_KEY", KEY)
    monkeypatch.setenv("BASELINE_KEY", "sk-of-the-baseline-model")
    monkeypatch.setenv("OSMOSIS_TOKEN", "token-of-the-platform")
    monkeypatch.setenv("TOOL_API_KEY", "for-a-tool-of-the-agent")
    baseline = ["--osmosis-baseline-model=other", "--osmosis-baseline-api-key-env=BASELINE_KEY"]
    project.endpoint.api_key = None
    project.endpoint.answers = f"your key is {KEY}"
    project.rows("a")
    body = (
        'assert "for-a-tool" in os.environ["TOOL_API_KEY"]\n'
        'said = asked(request["messages"])["content"]\n'
        'sys.stderr.write(f"{dict(os.environ)} {said}\\n")\n'
        "print(said)\n"
    )
    agent = command(project, body)
    options = project.options(f"-n{workers}", "--junitxml=out.xml", *baseline, agent=agent)
    session = project.apart(*options)
    assert session.outcomes["failed"] == 1
    assert "THE_SAME_KEY" not in session.out and "TOOL_API_KEY" in session.out
    assert "'BASELINE_KEY'" not in session.out and "OSMOSIS_TOKEN" not in session.out
    assert (project.path / "out.json").exists() and (project.path / "out.xml").exists()
    assert session.leaks("0123456789+abc", "sk-osmosis-") == []
    assert "'OPENAI_API_KEY': '***'" in session.out


def test_a_variable_that_is_let_pass_never_replaces_the_bridges_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THE_SAME_KEY", KEY)
    project.endpoint.api_key = KEY
    project.rows("a")
    body = f'assert os.environ["THE_SAME_KEY"] == "{KEY}"\n{ANSWER}'
    passed = ["--osmosis-pass-env=OPENAI_API_KEY", "--osmosis-pass-env=THE_SAME_KEY"]
    assert run(project, body, *passed).outcomes == {"passed": 1}


def test_a_program_of_the_projects_own_folder_is_found(project: Project):
    project.rows("a")
    script = project.write("agent.sh", "#!/bin/sh\ncat > /dev/null\necho a\n")
    script.chmod(0o755)
    assert project.run(agent="cmd:./agent.sh").outcomes == {"passed": 1}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_an_agent_in_another_language(project: Project):
    project.write(
        "agent.js",
        "let text = '';\n"
        "process.stdin.on('data', (more) => (text += more)).on('end', async () => {\n"
        "  const { messages } = JSON.parse(text);\n"
        "  const reply = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {\n"
        "    method: 'POST',\n"
        "    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}` },\n"
        "    body: JSON.stringify({ model: 'any', messages }),\n"
        "  });\n"
        "  console.log((await reply.json()).choices[0].message.content);\n"
        "});\n",
    )
    project.rows("a")
    assert project.run(agent="cmd:node agent.js").outcomes == {"passed": 1}


# ---- how output is read

PROMPT = [{"role": "user", "content": "q"}]
RECORDED = [*PROMPT, {"role": "assistant", "content": "42"}]


@pytest.mark.parametrize(
    ("text", "recorded", "messages"),
    [
        ("hi\n", [], [*PROMPT, {"role": "assistant", "content": "hi"}]),
        ("42", RECORDED, RECORDED),
        ("so: 42", RECORDED, [*RECORDED, {"role": "assistant", "content": "so: 42"}]),
        ("", RECORDED, RECORDED),
        (json.dumps(RECORDED), [], RECORDED),
        (json.dumps({"messages": RECORDED}), PROMPT, RECORDED),
        ("[1, 2]", [], [*PROMPT, {"role": "assistant", "content": "[1, 2]"}]),
        ('{"answer": 1}', [], [*PROMPT, {"role": "assistant", "content": '{"answer": 1}'}]),
        ("{not json", [], [*PROMPT, {"role": "assistant", "content": "{not json"}]),
        ("7", [], [*PROMPT, {"role": "assistant", "content": "7"}]),
    ],
)
def test_output_is_messages_or_else_text(text: str, recorded: Any, messages: Any):
    assert read_printed(text, prompt=PROMPT, recorded=recorded).messages == messages


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "printed nothing and asked the model nothing"),
        ('{"messages": "oops"}', "'messages' that are not a list of messages"),
        ('{"messages": [1]}', "'messages' that are not a list of messages"),
        ('{"messages": [], "reward": "high"}', "the reward 'high'; expected a number"),
        ('{"messages": [], "reward": NaN}', "the reward nan; expected a number"),
        (f'{{"messages": [], "reward": 1{"0" * 400}}}', "the reward 10+; expected a number"),
        ('{"messages": [], "reward": [1]}', r"the reward \[1\]; expected a number"),
    ],
)
def test_output_that_is_neither_is_refused(text: str, error: str):
    with pytest.raises(AgentFailed, match=error):
        read_printed(text, prompt=PROMPT, recorded=[])


def test_a_program_may_say_that_it_failed():
    outcome = read_printed('{"messages": [], "error": "gave up"}', prompt=[], recorded=[])
    assert outcome.error == "gave up"


# ---- how programs are run


def program(code: str, stdin: bytes = b"", kept: list[str] | None = None) -> Program:
    return Program(
        argv=[sys.executable, "-S", "-c", code],
        cwd=Path.cwd(),
        env=dict(os.environ),
        stdin=stdin,
        on_stderr=[].append if kept is None else kept.append,
    )


def test_long_input_and_output_do_not_wait_for_each_other():
    code = "import sys\nfor line in sys.stdin: print(line, end=''); print(line, file=sys.stderr)"
    kept: list[str] = []
    line = "é" * 1000 + "\n"
    found = program(code, line.encode() * 1000, kept).run()
    assert (found.status, found.stdout) == (0, line * 1000)
    assert "".join(kept).count("é") == 1_000_000


def test_a_program_need_not_read_its_input():
    assert program("print(1)", b"x" * 10_000_000).run().stdout == "1\n"


def test_a_program_that_prints_without_end_is_ended():
    with pytest.raises(TooMuchOutput, match=f"more than {MAX_STDOUT >> 20} MiB"):
        program("while True: print('x' * 100_000)").run()


def test_a_program_that_was_killed_before_it_started_never_starts(tmp_path: Path):
    never = program(f"open({str(tmp_path / 'started')!r}, 'w')")
    never.kill()
    assert never.run().status == -9
    assert not (tmp_path / "started").exists()
