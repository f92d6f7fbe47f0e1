"""Models by LiteLLM's name, from the command line to the report, at an endpoint on loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from osmosis_ai.models.litellm.library import load
from tests.support.endpoints import Endpoint
from tests.support.project import Project, Session

KEY = "sk-provider/0123456789+abcdef"
WORKFLOW = """
import os

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from osmosis_ai.rollout import AgentWorkflow, get_rollout_context


class Flow(AgentWorkflow):
    async def run(self, ctx):
        here = get_rollout_context()
        plain = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(
            base_url=here.chat_completions_url, api_key=here.api_key, http_client=plain
        ) as client:
            answer = await client.chat.completions.create(model="gpt-9", messages=ctx.prompt)
        print("environment", dict(os.environ))
        return [*ctx.prompt, answer.choices[0].message]
"""
CHATTER = (
    "litellm:",
    "litellm.",
    "litellm -",
    "give feedback",
    "debug=true",
    "provider list",
    "botocore",
    "warning",
)


@pytest.fixture(scope="module")
def litellm() -> None:
    """LiteLLM as it stays in this process: pytester forgets what is imported after it has begun."""
    load()


@pytest.fixture
def provider(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose provider is the endpoint, for LiteLLM as for the user."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_BASE", project.endpoint.base_url)
    project.endpoint.api_key = KEY
    project.write("flow.py", WORKFLOW)
    return project


def run(project: Project, model: str, *more: str, **replaced: Any) -> Session:
    options = {"model": model, "base_url": None, **replaced}
    return project.apart(*project.options("-n0", "--junitxml=out.xml", *more, **options))


def check_artefacts(project: Project, session: Session) -> None:
    assert (project.path / "out.json").exists() and (project.path / "out.xml").exists()
    assert session.leaks("0123456789+abc") == []
    said = f"{session.out}\n{session.err}".lower()
    assert not [word for word in CHATTER if word in said]


@pytest.mark.usefixtures("litellm")
def test_a_model_whose_price_is_known(provider: Project):
    provider.rows("a", f"say {KEY}")
    session = provider.run("--osmosis-temperature=0.5", model="openai/gpt-4o-mini", base_url=None)
    assert session.outcomes == {"passed": 2}, session.out + session.err
    assert {(ask.model, ask.body["temperature"]) for ask in provider.endpoint.seen} == {
        ("gpt-4o-mini", 0.5)
    }
    costs = [each["cost_usd"] for each in session.runs]
    assert all(0 < cost < 0.01 for cost in costs)
    summary = session.report["summary"]
    assert summary["cost_usd"] == pytest.approx(sum(costs))
    assert (summary["total_tokens"], summary["unknown_cost"]) == (30, 0)
    assert "2 rollouts, 30 tokens, <$0.0001" in session.out
    text = json.dumps(session.report)
    assert KEY not in text


@pytest.mark.slow
def test_a_workflow_and_a_price_that_nobody_knows(provider: Project):
    provider.endpoint.answers = f"the key is {KEY}"
    provider.rows("a", "b")
    session = run(provider, "openai/house-model-7", "--batch-size=2", agent="flow.py:Flow")
    assert session.outcomes == {"failed": 2}, session.out + session.err
    assert [each["cost_usd"] for each in session.runs] == [None, None]
    assert session.report["summary"]["cost_usd"] is None
    assert session.report["summary"]["unknown_cost"] == 2
    assert "2 rollouts, 30 tokens, cost unknown" in session.lines
    check_artefacts(provider, session)


SLOW_IMPORT = """
import sys
import time

clock = time.monotonic
late_s = 0.0
time.monotonic = lambda: clock() + late_s


class Slow:
    def find_spec(self, name, path=None, target=None):
        global late_s
        if name == "litellm":
            late_s = 10_000.0


sys.meta_path.insert(0, Slow())
"""
"""By all clocks, the import of LiteLLM takes hours."""


@pytest.mark.slow
def test_importing_litellm_takes_no_runs_time(provider: Project):
    provider.write("conftest.py", SLOW_IMPORT)
    provider.rows("a", "b")
    session = run(provider, "openai/gpt-4o-mini", "--batch-size=2")
    assert session.outcomes == {"passed": 2}, session.out + session.err


@pytest.mark.slow
def test_a_warning_of_litellm_is_no_error_of_a_session_that_asks_an_endpoint_first(
    provider: Project,
):
    provider.rows("a", "b")
    with Endpoint() as local:
        session = provider.apart(
            *provider.options(
                "-n0", "-Werror", "--osmosis-baseline-model=openai/gpt-4o-mini",
                base_url=local.base_url, api_key_env="OPENAI_API_KEY",
            )
        )  # fmt: skip
    assert session.outcomes == {"passed": 4}, session.out + session.err


@pytest.mark.usefixtures("litellm")
def test_a_baseline_model_of_a_provider_is_asked_there_and_each_key_goes_to_its_own_endpoint(
    provider: Project, monkeypatch: pytest.MonkeyPatch
):
    provider.rows("a", "b")
    monkeypatch.setenv("LOCAL_KEY", "key-of-the-local-server-0123")
    with Endpoint(api_key="key-of-the-local-server-0123") as local:
        session = provider.run(
            "--osmosis-baseline-model=openai/gpt-4o-mini",
            base_url=local.base_url, api_key_env="LOCAL_KEY",
        )  # fmt: skip
        assert session.outcomes == {"passed": 4}, session.out + session.err
        assert local.by_model == {"m": 2}
        assert provider.endpoint.by_model == {"gpt-4o-mini": 2}
        assert [line for line in session.lines if " at 127." in line or " key: " in line] == [
            f"osmosis: m at {local.netloc}, 1 in flight",
            f"osmosis: baseline openai/gpt-4o-mini at {provider.endpoint.netloc}",
            f"osmosis: key: LOCAL_KEY -> {local.netloc}",
            f"osmosis: key: OPENAI_API_KEY -> {provider.endpoint.netloc}",
        ]
        local.api_key = None
        keyless = provider.run(
            "--osmosis-baseline-model=openai/gpt-4o-mini", base_url=local.base_url
        )
        assert keyless.outcomes == {"passed": 4}, keyless.out + keyless.err
        assert "authorization" not in local.last_headers
        assert (
            f"osmosis: no key is sent to {local.netloc}: OPENAI_API_KEY is the baseline model's; "
            "give --osmosis-api-key-env OPENAI_API_KEY to send it there too"
        ) in keyless.lines
        monkeypatch.delenv("OPENAI_API_KEY")
        unset = provider.run("--osmosis-baseline-model=openai/gpt-4o-mini", base_url=local.base_url)
    assert unset.ret == 4
    assert unset.mistake == (
        "API key: OPENAI_API_KEY is not set: export it, or name another variable with "
        "--osmosis-baseline-api-key-env; 'openai/gpt-4o-mini' is asked at its provider unless "
        "--osmosis-baseline-base-url names a URL"
    )
