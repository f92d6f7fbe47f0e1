"""A pytest plugin that asks an evaluation's model one question before any row:
`-p osmosis_executors.question`.

A model that does not answer is a usage error. What the question has imported, as LiteLLM, the
evaluation uses too.
"""

from __future__ import annotations

import asyncio

import pytest

from osmosis_ai.models.errors import ProviderError
from osmosis_ai.secret_variables import masking
from pytest_osmosis.distributed.processes import is_worker
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.rollouts.prepare import open_model
from pytest_osmosis.session.current import evaluation_of
from pytest_osmosis.spec import ModelSpec

_QUESTION = ({"role": "user", "content": "Answer with the word: yes"},)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Ask, once the evaluation has read its rows and imported its code; workers start meanwhile."""
    evaluation = evaluation_of(session.config)
    if evaluation is None or is_worker(session.config):
        return
    for model in [each.model for each in evaluation.spec.evals]:
        if model.persona is not None:
            continue  # it is in this process
        try:
            asyncio.run(_ask(model))
        except (ConfigurationError, ProviderError) as error:
            message = f"the model does not answer: {masking()(str(error))}"
            raise pytest.UsageError(message) from None


async def _ask(model: ModelSpec) -> None:
    opened = open_model(model, base_urls={}, pool_size=1)
    try:
        await opened.complete(_QUESTION)
    finally:
        await opened.aclose()
