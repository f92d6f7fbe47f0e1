"""Names of models and of the variables that hold keys."""

from __future__ import annotations

import pytest

from osmosis_ai.providers import (
    ModelName,
    host_of,
    key_from_environment,
    key_variables,
    names_provider,
    parse_model_name,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-5", ModelName("openai", "gpt-5")),
        ("openai/gpt-5", ModelName("openai", "gpt-5")),
        (" Anthropic/claude-x ", ModelName("anthropic", "claude-x")),
        ("openrouter/meta/llama-3", ModelName("openrouter", "meta/llama-3")),
    ],
)
def test_a_bare_name_is_a_model_of_openai(text: str, name: ModelName):
    assert parse_model_name(text) == name


@pytest.mark.parametrize("text", ["", "/", "openai/", "/gpt-5", "a b", "openai/a b"])
def test_what_is_no_model_name_is_refused(text: str):
    with pytest.raises(ValueError, match="expected provider/model"):
        parse_model_name(text)


@pytest.mark.parametrize("name", ["openai/gpt-5", "openrouter/openai/gpt-oss-20b", "ollama/llama3"])
def test_a_name_with_a_provider(name: str):
    assert names_provider(name)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-5", "openai", "openai/", "/gpt-5", "OpenAI/gpt-5", "openai/gpt-oss-120b"),
        *("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "mistralai/Ministral-8B", "google/gemma-3"),
        *("deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2", "zai-org/GLM-5", "my-org/my-model"),
    ],
)
def test_a_name_that_an_endpoint_gives(name: str):
    assert not names_provider(name)


def test_the_usual_variable_carries_the_providers_name():
    assert key_variables("cerebras") == ("CEREBRAS_API_KEY",)
    assert key_variables("nano-gpt") == ("NANO_GPT_API_KEY",)
    assert key_variables("ollama") == ()


def test_the_first_variable_that_is_set_counts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GEMINI_API_KEY", " ")
    monkeypatch.setenv("GOOGLE_API_KEY", "google-key-0123456789")
    found = key_from_environment("gemini")
    assert found is not None
    assert (found.name, found.reveal()) == ("GOOGLE_API_KEY", "google-key-0123456789")


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "OPENAI_BASE_URL"),
        ("openai", "OPENAI_API_BASE"),
        ("text-completion-openai", "OPENAI_BASE_URL"),
        ("cohere_chat", "COHERE_API_BASE"),
        ("fireworks_ai", "FIREWORKS_API_BASE"),
        ("datarobot", "DATAROBOT_ENDPOINT"),
        ("anthropic", "ANTHROPIC_BASE_URL"),
        ("bedrock", "AWS_BEDROCK_RUNTIME_ENDPOINT"),
        ("azure", "AZURE_API_BASE"),
        ("huggingface", "HF_API_BASE"),
        ("mistral", "MISTRAL_AZURE_API_BASE"),
        ("ollama_chat", "OLLAMA_API_BASE"),
        ("vertex_ai", "VERTEXAI_API_BASE"),
        ("watsonx", "WATSONX_API_BASE"),
        ("watsonx", "WML_URL"),
        ("nano-gpt", "NANO_GPT_API_BASE"),
    ],
)
def test_an_address_in_the_environment_is_where_the_models_are_asked(
    monkeypatch: pytest.MonkeyPatch, provider: str, name: str
):
    assert host_of(provider) == provider
    monkeypatch.setenv(name, "https://me:hidden@gateway.example:8443/v1?key=hidden")
    assert host_of(provider) == "gateway.example:8443"
    assert host_of(provider, "http://other.example/v1") == "other.example"
