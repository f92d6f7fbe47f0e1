"""Tokens in a keyring: preferred where it is usable, and never waited for."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event
from types import ModuleType

import pytest

from osmosis_ai.platform.account import User
from osmosis_ai.secret import Secret
from osmosis_cli.credentials import store
from osmosis_cli.credentials.login import DEFAULT_PLATFORM, KeptLogin, LoginProblem

VALUE = "token-of-a-login-99"
LOGIN = KeptLogin(user=User(name="Ada"), token=Secret(VALUE), expires_at="2999-01-01T00:00:00Z")


class Backend:
    """A keyring in memory."""

    priority = 5.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, name: str, value: str) -> None:
        self.kept[service, name] = value

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


class Locked(Backend):
    """A keyring that quotes what it was given when it fails."""

    def set_password(self, service: str, name: str, value: str) -> None:
        raise RuntimeError(f"locked, cannot keep {value}")


class Makeshift(Backend):
    """Where there is no keyring at all."""

    priority = 0.0


class Hanging(Backend):
    """A keyring that waits for someone to unlock it."""

    def __init__(self) -> None:
        super().__init__()
        self.unlocked = Event()

    def set_password(self, service: str, name: str, value: str) -> None:
        self.unlocked.wait(60)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"OSMOSIS_CONFIG_DIR": str(tmp_path / "config")}


def install(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    module = ModuleType("keyring")
    module.get_keyring = lambda: backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setattr(store, "is_keyring_installed", lambda: True)
    monkeypatch.setattr(store, "LIMIT_S", 60.0)


def keep(environ: dict[str, str]) -> list[str]:
    said: list[str] = []
    store.keep(environ, DEFAULT_PLATFORM, "one", LOGIN, said.append)
    return said


def found(environ: dict[str, str]) -> str:
    login = store.find_login(environ)
    assert login is not None
    return login.token.reveal()


def test_a_usable_keyring_has_the_token_and_the_file_does_not(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, backend := Backend())
    assert keep(environ) == []
    assert VALUE not in store.credentials_path(environ).read_text()
    assert list(backend.kept.values()) == [VALUE]
    assert found(environ) == VALUE
    store.forget(environ, DEFAULT_PLATFORM, "one", print)
    assert backend.kept == {}
    assert store.find_login(environ) is None


@pytest.mark.fault("the keyring is locked, absent or hangs")
@pytest.mark.parametrize("backend", [Locked(), Makeshift()], ids=["locked", "none"])
def test_without_a_usable_keyring_the_file_has_the_token_and_that_is_said_once(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, backend: Backend
):
    install(monkeypatch, backend)
    [said] = keep(environ)
    assert "the keyring cannot be used" in said
    assert VALUE not in said
    assert found(environ) == VALUE


@pytest.mark.fault("the keyring is locked, absent or hangs")
def test_a_hanging_keyring_is_waited_for_no_longer_than_its_limit(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, backend := Hanging())
    monkeypatch.setattr(store, "LIMIT_S", 0.01)
    [said] = keep(environ)
    assert "did not answer within 0.01 s" in said
    assert found(environ) == VALUE
    backend.unlocked.set()


def test_a_keyring_that_lost_the_token_is_said(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, backend := Backend())
    keep(environ)
    backend.kept.clear()
    with pytest.raises(LoginProblem, match="osmosis login --force"):
        found(environ)


def test_a_keyring_that_is_not_installed_any_more_is_said(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, Backend())
    keep(environ)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(LoginProblem, match="in the keyring"):
        found(environ)
