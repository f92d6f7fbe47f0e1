"""Secrets over HTTP and on disk: set, listed, deleted, never given out."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from osmosis_platform.database.models import StoredSecret
from osmosis_platform.vault.cipher import KeyProblem, Vault, open_vault
from osmosis_platform.vault.records import check_key
from tests.support.platform_server import Account, PlatformServer

SECRETS = "/api/cli/environment-secrets"
VALUE = "a-value-that-is-never-shown"


def names(client: httpx.Client, scope: str = "all") -> list[tuple[str, str]]:
    found = client.get(SECRETS, params={"scope": scope}).json()["environment_secrets"]
    return [(secret["name"], secret["scope"]) for secret in found]


def test_secrets_are_listed_by_scope_and_another_user_sees_only_the_workspaces(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    for scope in ("user", "workspace"):
        body = {"name": "API_KEY", "value": VALUE, "scope": scope}
        first = client.post(SECRETS, json=body)
        again = client.post(SECRETS, json=body)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        assert first.json()["creator_name"] == account.user
        assert VALUE not in first.text + again.text
    assert names(client) == [("API_KEY", "workspace"), ("API_KEY", "user")]
    assert names(client, "user") == [("API_KEY", "user")]
    other = platform_server.add_user(f"{account.user}-other", workspace=account.workspace)
    client.headers.update(other.headers)
    assert names(client) == [("API_KEY", "workspace")]
    assert VALUE not in client.get(SECRETS).text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"value": ""}, "value"),
        ({"value": f"{VALUE}\0"}, "value"),
        ({"value": VALUE * 3000}, "value"),
        ({"value": [VALUE]}, "value"),
        ({"name": VALUE}, "name"),
        ({"name": "A" * 256}, "name"),
        ({"scope": VALUE}, "scope"),
        ({VALUE: 1}, "(a name)"),
    ],
)
def test_a_wrong_secret_is_refused_without_its_value(
    owner: httpx.Client, changes: dict[str, Any], field: str
):
    body = {"name": "A", "value": VALUE, "scope": "user", **changes}
    answer = owner.post(SECRETS, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert VALUE not in answer.text


def test_a_value_is_stored_encrypted_until_it_is_deleted(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    client.post(SECRETS, json={"name": "A", "value": VALUE, "scope": "user"})
    with platform_server.database.reading() as session:
        owned = StoredSecret.workspace_id == account.workspace_id
        stored = session.scalars(select(StoredSecret.encrypted).where(owned)).one()
    assert VALUE.encode() not in stored
    assert platform_server.vault.decrypt(stored) == VALUE
    files = [path for path in platform_server.settings.data.rglob("*") if path.is_file()]
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []
    body = {"name": "A", "scope": "user"}
    assert client.request("DELETE", SECRETS, json=body).json()["deleted"] is True
    assert client.request("DELETE", SECRETS, json=body).status_code == 404
    assert names(client) == []


@pytest.mark.fault("the key of the stored secrets is another one, or others can read its file")
def test_the_key_file_is_the_owners_alone_under_any_umask_and_is_kept(tmp_path: Path):
    before = os.umask(0)
    try:
        stored = open_vault(tmp_path / "data", None).encrypt("x")
    finally:
        os.umask(before)
    path = tmp_path / "data" / "secret.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert open_vault(tmp_path / "data", None).decrypt(stored) == "x"
    path.chmod(0o644)
    with pytest.raises(KeyProblem, match="chmod 600"):
        open_vault(tmp_path / "data", None)


@pytest.mark.fault("the key of the stored secrets is another one, or others can read its file")
def test_a_key_that_is_none_or_another_one_is_refused_without_showing_it(
    platform_server: PlatformServer, tmp_path: Path
):
    with pytest.raises(KeyProblem, match="not one of Fernet") as raised:
        Vault("no-key-at-all")
    assert "no-key-at-all" not in str(raised.value)
    platform_server.add_secret("A")
    with (
        platform_server.database.reading() as session,
        pytest.raises(KeyProblem, match="encrypted with another key"),
    ):
        check_key(session, open_vault(tmp_path, None))
