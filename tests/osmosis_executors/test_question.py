"""One question to the model of an evaluation, in the session that evaluates."""

from __future__ import annotations

import pytest

from tests.support.endpoints import Endpoint
from tests.support.modes import each_mode
from tests.support.project import Project

KEY = "sk-not-to-be-shown-0123456789"
ASKS = ("-p", "osmosis_executors.question")
QUESTION = "Answer with the word: yes"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of two rows, whose endpoint takes one key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project = Project(pytester, Endpoint(api_key=KEY))
    project.rows("a", "b")
    return project


@each_mode
def test_the_question_comes_once_and_before_every_row(project: Project, workers: int):
    with project.endpoint as endpoint:
        session = project.run(*ASKS, api_key_env="OPENAI_API_KEY", workers=workers)
    assert session.outcomes == {"passed": 2}
    assert endpoint.seen[0].row == QUESTION
    assert endpoint.by_row == {QUESTION: 1, "a": 1, "b": 1}


@each_mode
def test_a_model_that_does_not_answer_ends_the_session_before_any_row(
    project: Project, workers: int
):
    with project.endpoint as endpoint:
        endpoint.api_key = "another"
        session = project.run(*ASKS, api_key_env="OPENAI_API_KEY", workers=workers)
    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert session.mistake.startswith("the model does not answer: ")
    assert "OPENAI_API_KEY" in session.mistake
    assert endpoint.by_row.keys() == {QUESTION}
    assert KEY not in session.out + session.err
    assert not (project.path / "out.json").exists()


def test_the_embedded_model_is_not_asked(project: Project):
    session = project.run(*ASKS, model="embedded", base_url=None)
    assert sum(session.outcomes.values()) == 2


@pytest.mark.slow
def test_a_key_that_the_provider_refuses_is_reported_without_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    with project.endpoint as endpoint:
        endpoint.api_key = "another"
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        words = project.options(*ASKS, model="openai/gpt-5-mini", base_url=None)
        session = project.evaluate(*words)
    assert "the key in OPENAI_API_KEY was refused" in session.mistake, session.out + session.err
    assert endpoint.by_row.keys() == {QUESTION}
    assert KEY not in session.out + session.err
