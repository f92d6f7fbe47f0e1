"""Workflows and graders through the plugin: what they are given, scored by, and kept from."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.models.litellm.library import load
from tests.support.endpoints import error_reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session

KEY = "sk-provider/0123456789+abcdef"
OTHER_KEYS = {"ANTHROPIC_API_KEY": "sk-ant-9876543210-fedcba", "HF_TOKEN": "hf_9876543210fedcba"}

FLOW = '''
import asyncio
import json
import os
from urllib.parse import urlsplit

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, Grader, get_rollout_context


async def asked(messages):
    """A client of few lines, since there are many of them at once."""
    here = get_rollout_context()
    url = urlsplit(here.chat_completions_url)
    body = json.dumps({"model": "mine", "messages": messages})
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write((
        f"POST {url.path}/chat/completions HTTP/1.1\\r\\nHost: {url.netloc}\\r\\n"
        f"Authorization: Bearer {here.api_key}\\r\\n"
        f"Content-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n{body}"
    ).encode())
    reply = await reader.read()
    writer.close()
    status, found = int(reply.split()[1]), json.loads(reply.partition(b"\\r\\n\\r\\n")[2])
    if status != 200:
        raise OSError(f"{status}: {found}")
    return found["choices"][0]["message"]


class Flow(AgentWorkflow):
    async def run(self, ctx):
        message = await asked(ctx.prompt)
        return [*ctx.prompt, message]


class Silent(AgentWorkflow):
    async def run(self, ctx):
        history = [*ctx.prompt, await asked(ctx.prompt)]
        await asked([*history, {"role": "user", "content": "sure?"}])


class Blocking(AgentWorkflow):
    async def run(self, ctx):
        from openai import OpenAI

        here = get_rollout_context()
        client = OpenAI(base_url=here.chat_completions_url, api_key=here.api_key)
        answer = client.chat.completions.create(model="mine", messages=ctx.prompt)
        return [*ctx.prompt, answer.choices[0].message]


class Nothing(AgentWorkflow):
    async def run(self, ctx):
        return None


class Sleeper(AgentWorkflow):
    async def run(self, ctx):
        await asked(ctx.prompt)
        await asyncio.sleep(60)


class Exact(Grader):
    async def grade(self, ctx):
        said = ctx.sample.messages[-1]["content"]
        ctx.set_reward(1.0 if said == ctx.label else 0.25)
'''
STATEFUL = """
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, Grader


class Counted(AgentWorkflowConfig):
    seen: list[str] = []


class Stateful(AgentWorkflow):
    def __init__(self, config=None):
        super().__init__(config)
        self.seen = []

    async def run(self, ctx):
        for seen in (self.seen, ctx.config.seen):
            seen.append(ctx.prompt[-1]["content"])
        said = f"{len(self.seen)} {len(ctx.config.seen)}"
        return [*ctx.prompt, {"role": "assistant", "content": said}]


class Forgetful(Grader):
    def __init__(self, config=None):
        super().__init__(config)
        self.graded = 0

    async def grade(self, ctx):
        self.graded += 1
        ctx.set_reward(1.0 / self.graded)


config = Counted(name="counted")
shared = Stateful(config)
"""
GRADERS = """
import asyncio

from osmosis_ai.rollout import Grader


class Kind(Grader):
    async def grade(self, ctx):
        said = ctx.sample.messages[-1]["content"]
        if said == "raise":
            raise LookupError("no rubric for this")
        if said == "nan":
            ctx.set_reward(float("nan"))
        if said == "sleep":
            await asyncio.sleep(60)
        if said != "nothing":
            ctx.sample.messages.clear()
            ctx.set_reward(1.0)
"""


@pytest.fixture
def flows(project: Project) -> Project:
    """A project whose agents are the workflows above."""
    project.write("flow.py", FLOW)
    project.write("graders.py", GRADERS)
    return project


def run(project: Project, agent: str = "flow.py:Flow", *more: str, **replaced: Any) -> Session:
    return project.run(*more, agent=agent, **{"eval_fn": None, **replaced})


@each_mode
def test_a_workflow_is_scored_by_the_grader_of_its_module(flows: Project, workers: int):
    flows.rows("a", {"user_prompt": "b", "ground_truth": "B"})
    session = run(flows, workers=workers)
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert [each["scores"] for each in session.runs] == [{"reward": 1.0}, {"reward": 0.25}]
    assert session.report["config"]["eval_fns"] == ["reward"]
    assert [each["tokens"] for each in session.runs] == [15, 15]
    assert set(flows.endpoint.by_model) == {"m"}


def test_each_rollout_has_a_workflow_a_config_and_a_grader_of_its_own(flows: Project):
    flows.write("stateful.py", STATEFUL)
    flows.rows("a", "b", "c")
    session = run(flows, "stateful.py:Stateful")
    assert [each["answer"] for each in session.runs] == ["1 1"] * 3
    assert [each["scores"] for each in session.runs] == [{"reward": 1.0}] * 3
    session = run(flows, "stateful.py:shared", "--osmosis-fresh")
    assert sorted(each["answer"] for each in session.runs) == ["1 1", "2 2", "3 3"]


def test_what_the_workflow_does_not_tell_was_recorded(flows: Project):
    flows.rows({"user_prompt": "a", "ground_truth": "sure?"})
    flows.write(
        "rewards.py", "def judge_turns(messages, metadata):\n    return len(messages) / 5\n"
    )
    session = run(flows, "flow.py:Silent", eval_fn="rewards:judge_turns")
    assert session.outcomes == {"passed": 1}
    assert session.runs[0]["scores"] == {"reward": 1.0, "rewards:judge_turns": 1.0}
    assert session.runs[0]["llm_calls"] == 2


@pytest.mark.slow
def test_a_client_that_blocks_gets_its_answers(flows: Project):
    flows.rows("a", "b")
    assert run(flows, "flow.py:Blocking", "--batch-size=2").outcomes["passed"] == 2


def test_a_workflow_that_left_nothing_has_no_sample_to_grade(flows: Project):
    flows.rows("a")
    session = run(flows, "flow.py:Nothing")
    assert session.outcomes == {"errors": 1} and "AttributeError" in session.runs[0]["error"]


def test_further_eval_functions_score_what_the_grader_saw(flows: Project):
    flows.rows("right")
    session = run(flows, grader="graders:Kind", eval_fn="rewards:judge")
    assert session.runs[0]["scores"] == {"reward": 1.0, "rewards:judge": 1.0}


UNGRADED = {
    "raise": "`reward` raised LookupError: no rubric for this",
    "nan": "ValueError: reward must be a finite number, not nan",
    "nothing": "`Kind.grade` set no reward: call ctx.set_reward(x)",
    "sleep": "`reward` timed out after 0.5 s",
}


def test_a_grader_that_gives_no_reward_is_an_error_of_its_own(flows: Project):
    flows.rows("right", *UNGRADED)
    session = run(
        flows, "flow.py:Flow", "--batch-size=5", grader="graders:Kind", grader_timeout="0.5"
    )
    assert session.outcomes == {"passed": 1, "errors": 4}
    for found, error in zip(session.runs[1:], UNGRADED.values(), strict=True):
        assert found["success"] and found["scores"] == {} and error in found["error"]


@pytest.mark.slow
def test_a_workflow_that_takes_too_long_is_cancelled_with_what_it_used(flows: Project):
    flows.rows("a")
    session = run(flows, "flow.py:Sleeper", agent_timeout="2")
    assert session.outcomes == {"failed": 1}
    [found] = session.runs
    assert (found["error_type"], found["tokens"]) == ("timeout", 15)
    assert "  assistant  a" in session.lines


@pytest.mark.parametrize(
    ("status", "said", "outcomes", "whose"),
    [(402, "no credit", "errors", "provider"), (400, "too long", "failed", "agent")],
)
def test_a_refusal_behind_the_agents_own_client_is_reported_in_the_endpoints_words(
    flows: Project, status: int, said: str, outcomes: str, whose: str
):
    flows.endpoint.answers = lambda ask: [error_reply(status, said)]
    flows.rows("a")
    session = run(flows)
    assert session.outcomes == {outcomes: 1}
    [found] = session.runs
    assert found["error_type"] == whose
    assert found["error"].startswith(f"{status} from {flows.endpoint.netloc}")
    assert said in found["error"]


@each_mode
def test_a_refused_key_ends_the_session_at_the_third_row(flows: Project, workers: int):
    flows.endpoint.api_key = KEY
    flows.rows(*"abcdefgh")
    session = run(flows, workers=workers)
    assert session.ret == 1
    assert flows.endpoint.requests <= 3 + workers
    assert session.refusal.startswith("ERROR: 401")


@pytest.mark.parametrize(
    ("agent", "options", "mistake"),
    [
        ("flow.py:Flow", {"grader": "graders:Kind2"}, "module 'graders' has no 'Kind2'"),
        ("flow.py:Flow", {"grader": "flow:Flow"}, "is the class Flow; expected a Grader"),
        ("many.py:Flow", {}, "several graders (Exact, Other); name one with --osmosis-grader"),
        ("bare.py:Bare", {}, "nothing scores it: put a Grader into its module"),
        ("bare.py:Needy", {"grader": "graders:Kind"}, "the class Needy needs 'path' to be made"),
    ],
)
def test_mistakes_are_reported_before_any_request(
    flows: Project, agent: str, options: dict[str, str], mistake: str
):
    flows.write(
        "many.py",
        "from flow import *\n\nclass Other(Exact):\n    pass\n\nclass Exact(Exact):\n    pass",
    )
    flows.write(
        "bare.py",
        "from osmosis_ai.rollout import AgentWorkflow\n\n"
        "class Bare(AgentWorkflow):\n    async def run(self, ctx):\n        return []\n\n"
        "class Needy(Bare):\n    def __init__(self, path):\n        super().__init__()\n",
    )
    flows.rows("a")
    session = run(flows, agent, **options)
    assert session.ret == 4
    assert mistake in session.mistake
    assert flows.endpoint.requests == 0


CONFIGURED = """
config = AgentWorkflowConfig(name="mine", concurrency={"max_concurrent": 3}, flavour="salty")


class Configured(AgentWorkflow):
    async def run(self, ctx):
        assert ctx.config is self.config and ctx.config.flavour == "salty"
        assert ctx.metadata["topic"] == "sums" and ctx.metadata["execution_mode"] == "eval"
        if ctx.artifacts_dir is not None:
            (ctx.artifacts_dir / "note.txt").write_text(get_rollout_context().rollout_id)
            get_rollout_context().log_event("noted", key=os.environ.get("OPENAI_API_KEY"))
        return [*ctx.prompt, await asked(ctx.prompt)]
"""


@each_mode
def test_no_more_are_in_flight_than_the_config_allows(flows: Project, workers: int):
    flows.write("configured.py", FLOW + CONFIGURED)
    flows.rows(
        *({"user_prompt": str(n), "ground_truth": str(n), "topic": "sums"} for n in range(12))
    )
    flows.endpoint.latency_s, flows.endpoint.full_at = 0.05, 3
    session = run(flows, "configured.py:Configured", "--batch-size=8", workers=workers)
    assert session.outcomes["passed"] == 12
    assert flows.endpoint.max_in_flight == 3
    assert "3 in flight" in session.out


def test_artifacts_have_a_place_below_the_debug_directory(flows: Project):
    flows.write("configured.py", FLOW + CONFIGURED)
    flows.rows({"user_prompt": "a", "ground_truth": "a", "topic": "sums"})
    assert run(flows, "configured.py:Configured", debug_dir="debug").ret == 0
    [folder] = (flows.path / "debug").iterdir()
    assert abs(int(folder.name) - time.time()) < 3600
    assert (folder / "artifacts/eval-0-run-0/note.txt").read_text() == "eval-0-run-0"
    assert '"event": "noted"' in (folder / "eval-0-run-0.jsonl").read_text()


LEAKY = """
class Leaky(AgentWorkflow):
    async def run(self, ctx):
        here = get_rollout_context()
        said = await asked(ctx.prompt)
        print("environment", dict(os.environ), "said", said["content"])
        here.log_event("all", context=vars(here), environment=dict(os.environ), said=said)
        raise RuntimeError(f"{dict(os.environ)} {vars(here)} {said}")


import sys
import time
print("imported with the key:", "OPENAI_API_KEY" in os.environ, file=sys.stderr)
"""


@pytest.mark.slow
@each_mode
def test_the_providers_key_is_in_no_artefact(
    flows: Project, monkeypatch: pytest.MonkeyPatch, workers: int
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THE_SAME_KEY", KEY)
    for name, value in OTHER_KEYS.items():
        monkeypatch.setenv(name, value)
    flows.endpoint.api_key = KEY
    flows.endpoint.answers = f"your key is {KEY}"
    flows.write("leaky.py", FLOW + LEAKY)
    flows.rows("a", "b")
    options = flows.options(
        f"-n{workers}", "--junitxml=out.xml", "--log-level=DEBUG", "--osmosis-debug-dir=debug",
        agent="leaky.py:Leaky", eval_fn=None, api_key_env="OPENAI_API_KEY",
    )  # fmt: skip
    session = flows.apart(*options)
    assert session.outcomes == {"failed": 2}
    assert "environment" in session.out and "your key is ***" in session.out
    assert "OPENAI_API_KEY': '***'" in session.out and "THE_SAME_KEY': '***'" in session.out
    assert "imported with the key: True" in session.err
    artefacts = {path: path.read_bytes() for path in written(flows.path)}
    assert len(list((flows.path / "debug").iterdir())) == 1  # one folder for all workers
    assert {path.name for path in artefacts} >= {"out.json", "out.xml", "eval-0-run-0.jsonl"}
    texts = [session.out.encode(), session.err.encode(), *artefacts.values()]
    forms = [KEY, "0123456789+abc", *OTHER_KEYS.values()]
    assert not any(form.encode() in text for text in texts for form in forms)
    assert "'ANTHROPIC_API_KEY': '***'" in session.out


def written(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    ]


@each_mode
def test_a_judge_finds_the_key_that_it_shares_with_the_evaluated_model(
    flows: Project, monkeypatch: pytest.MonkeyPatch, workers: int
):
    load()  # here, since pytester forgets what the session imports
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    flows.endpoint.api_key = KEY
    flows.endpoint.answers = lambda ask: (
        json.dumps({"score": 1.0, "explanation": "right"}) if ask.model == "judge" else "a"
    )
    flows.write(
        "rubric.py",
        "from osmosis_ai import evaluate_rubric\n\n"
        "def judged(solution_str, ground_truth, extra_info):\n"
        "    info = {'provider': 'openai', 'model': 'judge', "
        f"'api_base': {flows.endpoint.base_url!r}}}\n"
        "    return evaluate_rubric('Is it right?', solution_str, info)\n",
    )
    flows.rows("a")
    session = run(flows, eval_fn="rubric:judged", workers=workers)
    assert session.outcomes == {"passed": 1}
    assert session.runs[0]["scores"]["rubric:judged"] == 1.0


SEES_THE_ENVIRONMENT = """
import os

assert os.environ["OPENAI_API_KEY"]  # where it is imported, where tests stand beside it


def seen(solution_str, ground_truth, extra_info):
    return float(os.environ["OPENAI_API_KEY"] == os.environ["THE_SAME_KEY"])


def test_beside():
    assert os.environ["OPENAI_API_KEY"]
"""


def test_the_environment_is_left_alone_for_code_in_our_process(
    flows: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THE_SAME_KEY", KEY)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    before = dict(os.environ)
    flows.endpoint.api_key = KEY
    flows.rows("a")
    flows.write("test_seen.py", SEES_THE_ENVIRONMENT)
    session = run(flows, "flow.py:Flow", "test_seen.py", "data.jsonl", eval_fn="test_seen.py:seen")
    assert session.outcomes == {"passed": 2}
    assert dict(os.environ) == before
