"""A login that is confirmed in a browser, and an upload that is killed, against the platform."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from osmosis_cli.credentials import store
from tests.support.command import Osmosis
from tests.support.platform_server import PlatformServer, serving
from tests.support.pushed_workspace import GIT_TOKEN, make_workspace

pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"
ROW = json.dumps({"system_prompt": "", "user_prompt": "x" * 900, "ground_truth": "2"})
PART = 64 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    from osmosis_platform.settings import ServerLimits

    limits = ServerLimits(simple_upload_bytes=PART, part_bytes=PART)
    with serving(tmp_path_factory.mktemp("platform"), limits=limits) as found:
        found.add_user("ada", workspace="acme", password=PASSWORD)
        yield found


class Browser:
    """A user who confirms the code while the command waits."""

    server: PlatformServer
    confirmed: str

    def sleep(self, seconds: float) -> None:
        with httpx.Client(base_url=self.server.url, follow_redirects=True, timeout=60) as browser:
            login = browser.get("/device", params={"code": self.code()})
            page = browser.post(
                "/login", data={**hidden(login), "name": "ada", "password": PASSWORD}
            )
            workspace = re.findall(r'name="workspace"\s+value="(\w+)"', page.text)[0]
            without_token = {"code": self.code(), "workspace": workspace, "decision": "approve"}
            assert browser.post("/device", data=without_token).status_code == 403
            data = {**hidden(page), "workspace": workspace, "decision": "approve"}
            type(self).confirmed = browser.post("/device", data=data).text

    def code(self) -> str:
        from sqlalchemy import select

        from osmosis_platform.database.models import DeviceGrant

        with self.server.database.reading() as session:
            return session.scalars(select(DeviceGrant.user_code)).one()


def hidden(page: httpx.Response) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))


@pytest.fixture
def osmosis(
    osmosis: Osmosis, server: PlatformServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Osmosis:
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("OSMOSIS_PLATFORM_URL", server.url)
    monkeypatch.setattr(store, "is_keyring_installed", lambda: False)
    monkeypatch.setattr(Browser, "server", server, raising=False)
    monkeypatch.setattr("osmosis_ai.platform.device_flow.sleep", Browser().sleep)
    monkeypatch.chdir(make_workspace(tmp_path, monkeypatch))
    return osmosis


@pytest.mark.fault("an upload is cut short: Ctrl-C or a failure")
def test_from_a_code_in_the_browser_to_an_upload_after_a_killed_one_and_a_logout(
    server: PlatformServer, osmosis: Osmosis, tmp_path: Path
):
    status, out, err = osmosis("login")
    assert status == 0
    assert "You are logged in" in Browser.confirmed
    assert "as ada <ada@x.test>, workspace: acme (owner)" in out
    assert f"{server.url}/device?code=" in err
    token = json.loads((tmp_path / "config/credentials.json").read_text())
    [space] = token["platforms"][server.url]["workspaces"].values()
    said = [out, err]

    words = ("secret", "set", "MY_KEY", "--scope", "workspace")
    assert osmosis(*words, stdin=b"value-not-to-be-seen-1\n")[0] == 0
    status, out, _ = osmosis("secret", "list", "--json")
    assert [one["name"] for one in json.loads(out)["secrets"]] == ["MY_KEY"]
    assert "value-not-to-be-seen-1" not in out

    Path("rows.jsonl").write_text(f"{ROW}\n" * 20_000)
    kill_upload(server, after_parts=5)
    status, out, err = osmosis("dataset", "upload", "rows.jsonl", "--json")
    assert (status, json.loads(out)["row_count"]) == (0, 20_000)

    status, out, err = osmosis("logout", "--yes", "--json")
    assert json.loads(out)["logged_out"][0]["revoked"] is True
    said += [out, err]
    headers = {"Authorization": f"Bearer {space['token']}", "X-Osmosis-CLI-Version": "0.1.0"}
    assert httpx.get(f"{server.url}/api/cli/verify", headers=headers, timeout=60).status_code == 401
    assert "osmosis login" in osmosis("whoami")[2]
    assert not [text for text in said if space["token"] in text or GIT_TOKEN in text]


def kill_upload(server: PlatformServer, *, after_parts: int) -> None:
    """Start an upload, and kill it once the platform has some parts and not yet all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "osmosis_cli", "dataset", "upload", "rows.jsonl"],
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    while parts_of(server) < after_parts:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL


def parts_of(server: PlatformServer) -> int:
    return sum(1 for _ in server.settings.data.glob("datasets/*/part-*"))
