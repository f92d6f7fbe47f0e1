"""The pages in a real browser: headless Chromium, where there is one, by its DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from tests.platform_server import PlatformServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PASSWORD = "correct horse battery"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


class Page:
    """A page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)

    async def send(self, method: str, **values: Any) -> Any:
        """Send a command, and return what it answers."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": values})
        async for message in self._socket:
            found = json.loads(message.data)
            if found.get("id") == number:
                return found.get("result", {})  # none while the page is left for another one
        raise AssertionError("the browser hung up")

    async def evaluate(self, code: str) -> Any:
        """Run code in the page."""
        found = await self.send("Runtime.evaluate", expression=code, returnByValue=True)
        return found.get("result", {}).get("value")

    async def until(self, code: str) -> None:
        """Wait until code in the page is true."""
        while not await self.evaluate(f"document.readyState === 'complete' && ({code})"):
            await asyncio.sleep(0.02)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[str]:
    """The address of a browser's DevTools."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options += ["--no-proxy-server", "--no-first-run"]
    options += ["--remote-debugging-port=0", f"--user-data-dir={tmp_path}", "--window-size=500,800"]
    command = [CHROMIUM, *options, "about:blank"]
    port = tmp_path / "DevToolsActivePort"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while not (port.exists() and "\n" in port.read_text("utf-8")):
                assert process.poll() is None
                time.sleep(0.02)
            yield f"127.0.0.1:{port.read_text('utf-8').splitlines()[0]}"
        finally:
            process.terminate()


@asynccontextmanager
async def opened(browser: str) -> AsyncIterator[Page]:
    """Talk to the browser's first page."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{browser}/json/list") as answer:
            pages = [each for each in await answer.json() if each["type"] == "page"]
        async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as socket:
            yield Page(socket)


def test_a_user_logs_in_and_confirms_a_device(
    browser: str, platform_server: PlatformServer
) -> None:
    account = platform_server.add_user(
        "person", workspace="people", repository="people/agents", password=PASSWORD
    )
    with httpx.Client(
        base_url=platform_server.url, headers={"X-Osmosis-CLI-Version": "0.1.0"}
    ) as device:
        grant = device.post("/api/cli/device/authorize", json={"deviceName": "laptop"}).json()

        async def confirm() -> None:
            async with opened(browser) as page:
                await page.send(
                    "Emulation.setDeviceMetricsOverride",
                    width=375,
                    height=700,
                    deviceScaleFactor=1,
                    mobile=True,
                )
                await page.send("Page.navigate", url=grant["verification_uri_complete"])
                await page.until("document.querySelector('#password') !== null")
                await fits(page)
                await page.evaluate(f"""
                    document.querySelector('#name').value = {account.user!r};
                    document.querySelector('#password').value = {PASSWORD!r};
                    document.querySelector('button.primary').click()""")
                await page.until("document.querySelector('p.code') !== null")
                await fits(page)
                assert (
                    await page.evaluate("document.querySelector('p.code').innerText")
                    == (grant["user_code"])
                )
                assert await page.evaluate("document.cookie") == ""
                await page.evaluate("document.querySelector('button[value=approve]').click()")
                await page.until("document.body.innerText.includes('You are logged in')")

        asyncio.run(asyncio.wait_for(confirm(), 120))
        body = {"device_code": grant["device_code"]}
        found = device.post("/api/cli/device/token", json=body).json()
    assert found["workspace"]["name"] == "people"


async def fits(page: Page) -> None:
    """Check that the page is as wide as the window, and styled."""
    assert await page.evaluate("document.documentElement.scrollWidth") == 375
    assert await page.evaluate("getComputedStyle(document.querySelector('main')).borderStyle") == (
        "solid"
    )
