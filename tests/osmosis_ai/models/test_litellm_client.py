"""The door to LiteLLM: silent, offline, and no burden to others who use LiteLLM."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.models.errors import ProviderError
from osmosis_ai.models.litellm import library
from osmosis_ai.models.litellm.model import LiteLLMModel
from osmosis_ai.secret import Secret
from tests.support.endpoints import Endpoint

KEY = "sk-door-0123456789abcdef"

SESSION = """
    import asyncio, logging, os, socket, sys, warnings

    warnings.simplefilter("error")
    logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")

    resolve = socket.getaddrinfo
    def only_loopback(host, *args, **kwargs):
        if host not in ("127.0.0.1", None):
            sys.exit(f"resolves {host}")
        return resolve(host, *args, **kwargs)
    socket.getaddrinfo = only_loopback

    import osmosis_ai.models.litellm.client
    from osmosis_ai.models.errors import ProviderError
    from osmosis_ai.models.litellm.model import LiteLLMModel
    from osmosis_ai.secret import Secret
    assert "litellm" not in sys.modules, "imported too early"

    async def ask(model, **params):
        opened = LiteLLMModel(
            model=model, api_base=sys.argv[1], api_key=Secret(os.environ["A_KEY"], "A_KEY")
        )
        try:
            await opened.complete([{"role": "user", "content": "x"}], params=params)
        except ProviderError as error:
            assert error.status in (404, 400), error
        finally:
            await opened.aclose()

    asyncio.run(ask("openai/echo"))
    asyncio.run(ask("openai/fault-400"))
    asyncio.run(ask("anthropic/claude-sonnet-4-5", response_format={"type": "json_object"}))
    assert "FROM_DOTENV" not in os.environ, "read .env"
    assert "LITELLM_MODE" not in os.environ

    import litellm
    async def somebody_else():
        reply = await litellm.acompletion(
            model="openai/echo", messages=[{"role": "user", "content": "theirs"}],
            api_base=sys.argv[1], api_key="theirs",
        )
        print(reply.choices[0].message.content)

    warnings.simplefilter("ignore")
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("LiteLLM").warning("their warning")
    asyncio.run(somebody_else())
"""


@pytest.mark.slow
def test_nothing_but_the_users_own_words_reaches_the_terminal(tmp_path: Path):
    """Of a process that asks well and badly through the door, then uses LiteLLM on its own."""
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n")
    (tmp_path / "session.py").write_text(textwrap.dedent(SESSION))
    root = str(Path(__file__).parents[3])
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with Endpoint() as endpoint:
        done = subprocess.run(
            [sys.executable, "session.py", endpoint.base_url],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": root, "A_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "theirs\n"
    ours, theirs, _ = done.stderr.partition("their warning")
    for chatter in ("Give Feedback", "LiteLLM.Info", "HTTP Request", "Traceback", KEY):
        assert chatter not in ours
    assert theirs, "what others log through LiteLLM is left alone"


def test_records_logged_outside_the_door_pass_its_filter():
    record = logging.LogRecord("LiteLLM", logging.WARNING, __file__, 1, "x", None, None)
    assert library._LogFilter().filter(record)
    with library._set(library._inside, True):
        assert not library._LogFilter().filter(record)


# Requests go through our transport, or not at all.


def refused(endpoint: Endpoint) -> ProviderError:
    async def ask() -> None:
        model = LiteLLMModel(
            model="openai/m", api_base=endpoint.base_url, api_key=Secret(KEY, "A_KEY")
        )
        try:
            await model.complete([{"role": "user", "content": "x"}])
        finally:
            await model.aclose()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(ask())
    assert caught.value.fatal
    return caught.value


def test_nothing_is_sent_where_no_name_can_be_replaced_by_our_transport(
    monkeypatch: pytest.MonkeyPatch,
):
    library.load()
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    for name in library._TRANSPORT_FACTORIES:
        monkeypatch.delattr(AsyncHTTPHandler, name, raising=False)
    monkeypatch.setattr(library, "_imported", cache(library._imported.__wrapped__))
    with Endpoint("42") as endpoint:
        error = refused(endpoint)
        assert endpoint.requests == 0
    assert "create_async_transport" in str(error)
    assert "--osmosis-base-url" in str(error)


def test_certificates_that_cannot_be_loaded_are_an_error_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
):
    @cache
    def imported() -> None:
        raise ssl.SSLError("no certificate or crl found")

    monkeypatch.setattr(library, "_imported", imported)
    with Endpoint("42") as endpoint:
        error = refused(endpoint)
        assert endpoint.requests == 0
    assert "look at SSL_CERT_FILE" in str(error)


def test_an_answer_from_elsewhere_fails_and_fallbacks_of_the_whole_process_are_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    litellm = library.load()

    async def elsewhere(**arguments: Any) -> Any:
        return litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": "42"}}])

    with Endpoint("42") as endpoint, monkeypatch.context() as patch:
        patch.setattr(litellm, "acompletion", elsewhere)
        error = refused(endpoint)
    assert "without the HTTP transport that guards the key" in str(error)
    monkeypatch.setattr(litellm, "model_fallbacks", ["anthropic/claude-sonnet-4-5"])
    with Endpoint("42") as endpoint:
        error = refused(endpoint)
        assert endpoint.requests == 0
    assert "litellm.model_fallbacks is set" in str(error)
