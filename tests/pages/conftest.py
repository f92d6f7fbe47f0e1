"""A shell in a folder with the calculator's files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from osmosis_ai.embedded import start_embedded

from .blocks import ROOT
from .shell import Shell

CALCULATOR = ROOT / "examples" / "calculator"
FILES = ("server.py", "tools.py", "rewards.py", "test_data.jsonl")
"""What a page's commands find, where the page itself shows no such file."""


@pytest.fixture
def shell(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Shell]:
    for name in FILES:
        shutil.copy(CALCULATOR / name, pytester.path / name)
    monkeypatch.syspath_prepend(pytester.path)
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(pytester.path / "config"))
    with start_embedded("perfect") as endpoint:
        yield Shell(pytester, monkeypatch, capsys, endpoint.base_url)
