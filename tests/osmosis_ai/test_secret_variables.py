"""Which environment variables hold secrets."""

from __future__ import annotations

import pytest

from osmosis_ai.secret_variables import secret_variables

VALUE = "value-0123456789"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "COMETAPI_KEY", "WATSONX_APIKEY", "WATSONX_ZENAPIKEY", "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_CLIENT_SECRET",
        "SNOWFLAKE_JWT", "GIGACHAT_CREDENTIALS", "VERTEXAI_CREDENTIALS", "AZURE_PASSWORD",
    ],
)  # fmt: skip
def test_the_keys_of_providers_are_known_by_their_names(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, VALUE)
    found = {each.name: each.reveal() for each in secret_variables()}
    assert found[name] == VALUE


@pytest.mark.parametrize(
    "name",
    ["OPENAI_BASE_URL", "MAX_TOKENS", "AWS_REGION", "SORT_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
)
def test_other_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, VALUE)
    assert name not in {each.name for each in secret_variables()}
