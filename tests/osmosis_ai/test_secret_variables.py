"""Which environment variables hold secrets."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from osmosis_ai.secret import MASK, Redactor
from osmosis_ai.secret_variables import secret_variables

VALUE = "value-0123456789"


def secrets_of(monkeypatch: pytest.MonkeyPatch, **variables: str) -> list[str]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return [each.reveal() for each in secret_variables() if each.name in variables]


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "COMETAPI_KEY", "WATSONX_APIKEY", "WATSONX_ZENAPIKEY", "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_CLIENT_SECRET",
        "SNOWFLAKE_JWT", "GIGACHAT_CREDENTIALS", "VERTEXAI_CREDENTIALS", "AZURE_PASSWORD",
        "SIGNING_KEY", "PGPASSWORD", "DB_PASSWD", "SMTP_CREDENTIALS", "db_password",
    ],
)  # fmt: skip
def test_secrets_are_known_by_the_names_of_their_variables(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    assert secrets_of(monkeypatch, **{name: VALUE}) == [VALUE]


@pytest.mark.parametrize(
    "name", ["OPENAI_BASE_URL", "MAX_TOKENS", "AWS_REGION", "SSH_AUTH_SOCK", "KEYRING", "HOTKEY"]
)
def test_other_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch, name: str):
    assert secrets_of(monkeypatch, **{name: VALUE}) == []


@pytest.mark.parametrize(
    "value",
    [
        "", "1", "true", "short", "20261128", "1234567.25", "disabled", "production", "postgres",
        "OPENAI_API_KEY", __file__, "~/", str(Path("tests", "support")),
    ],
)  # fmt: skip
def test_what_is_no_secret_by_its_value_is_not_masked(monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("OPENAI_API_KEY", VALUE)
    names = ("SORT_KEY", "DB_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS")
    assert secrets_of(monkeypatch, **dict.fromkeys(names, value)) == []


def test_a_name_is_no_key_but_may_be_a_password(monkeypatch: pytest.MonkeyPatch):
    given = {
        "SORT_KEY": "created_at",
        "SIGNING_KEY": "not-a-name-of-a-field",
        "X_PASSWORD": "baseball",
    }
    assert secrets_of(monkeypatch, **given) == ["not-a-name-of-a-field", "baseball"]


def test_a_variable_that_is_named_is_a_secret_whatever_it_holds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OSMOSIS_SECRET_NAMES", "PIN")
    assert secrets_of(monkeypatch, PIN="20261128") == ["20261128"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("postgresql+psycopg://app:correct-horse@db:5432/app", "postgresql+psycopg://app:***@db:5432/app"),
        ("redis://:correct-horse@db", "redis://:***@db"),
        ("amqp://a:correct-horse@one;amqp://b:battery-staple@two", "amqp://a:***@one;amqp://b:***@two"),
        ("https://me:p%40ss%2Fword-1@host", "https://me:***@host"),
        ("mysql://me:p@ss/word-1@host", "mysql://me:***@host"),
        # A password that is a word too is masked beside its user alone.
        ("postgres://postgres:postgres@localhost", "postgres:***localhost"),
        ("postgres://app:short@localhost", "postgres:***localhost"),
        ("https://user@host:8080/path", "https://user@host:8080/path"),
        ("http://localhost:8080/v1", "http://localhost:8080/v1"),
        ("ssh://git@github.com/owner", "ssh://git@github.com/owner"),
    ],
    ids=itertools.count(),  # pytest sets a variable to the name of the test
)  # fmt: skip
def test_the_password_of_a_connection_string_is_a_secret(
    monkeypatch: pytest.MonkeyPatch, value: str, shown: str
):
    monkeypatch.setenv("ANY_URL", value)
    redact = Redactor(secret_variables())
    assert redact(value) == shown
    assert redact("postgres is no secret") == "postgres is no secret"


def test_a_password_is_masked_as_it_is_and_as_a_url_quotes_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ANY_URL", "https://me:p%40ss%2Fword-1@host")
    redact = Redactor(secret_variables())
    assert {redact("p@ss/word-1"), redact("p%40ss%2Fword-1"), redact("p%40ss%2fword-1")} == {MASK}
