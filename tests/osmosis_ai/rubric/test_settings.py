"""What `model_info` may say, and where the key comes from."""

from __future__ import annotations

from typing import Any

import pytest

from osmosis_ai.rubric.errors import MissingAPIKeyError
from osmosis_ai.rubric.settings import JudgeSettings, judge_settings
from osmosis_ai.secret import Redactor

KEY = "sk-inline-0123456789"


def settings_of(arguments: dict[str, Any] | None = None, **info: Any) -> JudgeSettings:
    whole = {"provider": "openai", "model": "gpt-5", "api_key": KEY, **info}
    return judge_settings(whole, **arguments or {})


def key_of(settings: JudgeSettings) -> str:
    assert settings.api_key is not None
    return settings.api_key.reveal()


def test_the_defaults_are_bounds_of_0_and_1_and_a_minute():
    found = settings_of()
    assert (found.score_min, found.score_max, found.timeout_s) == (0.0, 1.0, 60.0)
    assert str(found.name) == "openai/gpt-5"
    assert found.params == {}


def test_arguments_of_the_call_win_over_model_info():
    arguments = {"original_input": "given", "score_min": -1, "score_max": 1, "timeout": 5}
    found = settings_of(arguments, original_input="info", score_min=2, score_max=3, timeout=7)
    assert (found.original_input, found.score_min, found.score_max) == ("given", -1.0, 1.0)
    assert found.timeout_s == 5.0


def test_sampling_parameters_are_handed_on():
    found = settings_of(temperature=0.2, seed=3, max_tokens=None, colour="red")
    assert found.params == {"temperature": 0.2, "seed": 3}


def test_a_model_that_repeats_its_provider_is_not_doubled():
    assert str(settings_of(model="openai/gpt-5").name) == "openai/gpt-5"
    name = settings_of(provider="openrouter", model="openai/gpt-5").name
    assert str(name) == "openrouter/openai/gpt-5"


@pytest.mark.parametrize("named", [("embedded", "perfect"), ("openai", "embedded")])
def test_the_embedded_model_is_refused_as_a_judge(named: tuple[str, str]):
    provider, model = named
    with pytest.raises(ValueError, match="the embedded model cannot judge"):
        settings_of(provider=provider, model=model, api_key=None)
    own = settings_of(provider=provider, model=model, api_base="http://localhost:8000/v1")
    assert own.name.model == model


def test_what_a_rubric_function_overrides_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JUDGE_API_KEY", "sk-variable-0123456789")
    found = settings_of(model_info_overrides={"model": "gpt-6", "api_key_env": "JUDGE_API_KEY"})
    assert (str(found.name), key_of(found)) == ("openai/gpt-6", "sk-variable-0123456789")
    with pytest.raises(TypeError, match="model_info_overrides"):
        settings_of(model_info_overrides="gpt-6")


@pytest.mark.parametrize(
    ("info", "error", "said"),
    [
        ({"provider": None}, TypeError, "no 'provider'"),
        ({"model": " "}, TypeError, "'model'.*non-empty"),
        ({"model": 5}, TypeError, "not int"),
        ({"score_min": 1, "score_max": 1}, ValueError, r"score_min \(1\) must be below"),
        ({"score_max": float("nan")}, ValueError, "finite"),
        ({"score_max": 10**400}, ValueError, "finite"),
        ({"score_max": True}, TypeError, "not bool"),
        ({"score_max": "10"}, TypeError, "not str"),
        ({"timeout": 0}, ValueError, "above 0"),
        ({"system_prompt": 1}, TypeError, "system_prompt"),
        ({"original_input": ["x"]}, TypeError, "original_input"),
        ({"api_base": 1}, TypeError, "api_base"),
        ({"api_key": 12345678}, TypeError, "api_key"),
    ],
)
def test_wrong_values_are_named(info: dict[str, Any], error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        settings_of(**info)


def test_model_info_must_be_a_mapping():
    with pytest.raises(TypeError, match="mapping, not str"):
        judge_settings("openai/gpt-5")  # type: ignore[arg-type]


def test_a_judges_key_is_masked_wherever_it_stands():
    redact = Redactor()
    settings_of(api_key="sk-in-a-line-of-code-83jd9Q")
    assert redact('{"api_key": "sk-in-a-line-of-code-83jd9Q"}') == '{"api_key": "***"}'


def test_an_inline_key_wins_over_any_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual-0123456789")
    monkeypatch.setenv("JUDGE_KEY", "sk-named-0123456789")
    assert key_of(settings_of(api_key_env="JUDGE_KEY")) == KEY
    assert key_of(settings_of(api_key="", api_key_env="JUDGE_KEY")) == "sk-named-0123456789"
    assert key_of(settings_of(api_key=None)) == "sk-usual-0123456789"


def test_over_plain_http_a_key_goes_to_another_machine_only_when_its_variable_is_named(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://judge.example/v1")
    with pytest.raises(MissingAPIKeyError) as caught:
        settings_of(api_key=None)
    assert str(caught.value) == (
        "OPENAI_API_KEY is not sent over plain http to judge.example: set "
        'model_info["api_key_env"] to "OPENAI_API_KEY" to send it'
    )
    assert key_of(settings_of(api_key=None, api_key_env="OPENAI_API_KEY")) == KEY
    assert key_of(settings_of(api_key=None, api_base="http://judge.example/v1")) == KEY
    for safe in ("https://judge.example/v1", "http://127.0.0.1:8000/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", safe)
        assert key_of(settings_of(api_key=None)) == KEY


def test_a_named_variable_that_is_not_set_is_never_replaced_by_the_usual_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual-0123456789")
    with pytest.raises(MissingAPIKeyError, match="JUDGE_KEY is not set"):
        settings_of(api_key=None, api_key_env="JUDGE_KEY")
    with pytest.raises(MissingAPIKeyError) as caught:
        settings_of(api_key=None, api_key_env=KEY)
    assert KEY not in str(caught.value)
    assert "name of an environment variable" in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} x", f"{KEY}–x"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str):
    with pytest.raises(MissingAPIKeyError) as caught:
        settings_of(api_key=key)
    assert KEY not in str(caught.value)


def test_a_local_server_needs_no_key():
    assert settings_of(provider="ollama", model="llama3", api_key=None).api_key is None


def test_the_settings_never_show_the_key():
    assert KEY not in repr(settings_of())
