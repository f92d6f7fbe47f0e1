"""The header's line about the key."""

from __future__ import annotations

import pytest

from osmosis_ai.secret import Secret
from pytest_osmosis.session.header import key_line
from pytest_osmosis.spec import ModelSpec

KEY = Secret("sk-not-to-be-seen-anywhere", "MODELS_KEY")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ModelSpec("anthropic/claude", api_key=KEY), ["osmosis: key: MODELS_KEY -> anthropic"]),
        (ModelSpec("gpt-5", api_key=KEY), ["osmosis: key: MODELS_KEY -> openai"]),
        (
            ModelSpec("m", base_url="http://h.example:8000/v1", api_key=KEY),
            ["osmosis: key: MODELS_KEY -> h.example:8000"],
        ),
        (ModelSpec("m", base_url="http://localhost:8000/v1", api_key_env="OPENAI_API_KEY"), []),
        (ModelSpec("embedded", api_key=KEY), []),
    ],
)
def test_it_names_the_variable_of_a_key_that_is_sent_and_where_to(model, said):
    assert list(key_line(model)) == said


def test_an_address_in_the_environment_is_where_the_key_goes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    model = ModelSpec("openai/gpt-5", api_key=KEY)
    assert list(key_line(model)) == ["osmosis: key: MODELS_KEY -> gateway.example"]
