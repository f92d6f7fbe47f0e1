"""The unit of systemd and the file of Compose in the documentation are for the command as it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from osmosis_cli.main import cli
from osmosis_platform.commands import place
from osmosis_platform.vault.cipher import KEY_VARIABLE

FOLDER = Path(__file__).parents[3] / "docs" / "platform" / "deploy"
UNIT = FOLDER / "osmosis-platform.service"
VARIABLES = {
    KEY_VARIABLE,
    place.DATA_VARIABLE,
    place.DATABASE_VARIABLE,
    place.PASSWORD_FILE_VARIABLE,
}


def accepts(words: Iterable[str]) -> bool:
    """Whether the command takes these words, without doing anything."""
    command: Any = cli
    words = list(words)
    for name in ("platform", "serve"):
        assert words.pop(0) == name
        command = command.get_command(None, name) or pytest.fail(name)
    command.make_context("serve", words)
    return True


def test_the_unit_starts_the_command_with_options_that_it_has_and_allows_its_sandbox():
    lines = (line.partition("=") for line in UNIT.read_text().splitlines() if "=" in line)
    settings = [(name, value) for name, _, value in lines if not name.startswith("#")]
    (started,) = (value for name, value in settings if name == "ExecStart")
    program, *words = started.split()
    assert program == "/opt/osmosis/bin/osmosis"
    assert accepts(words)
    variables = {value.partition("=")[0] for name, value in settings if name == "Environment"}
    assert variables <= VARIABLES
    assert ("NoNewPrivileges", "yes") in settings
    # A run that takes all memory does not end the platform.
    assert ("OOMPolicy", "continue") in settings
    assert "--limit-memory" in words
    found = dict(settings)  # bubblewrap makes its sandbox
    assert {*found["RestrictNamespaces"].split()} == {"user", "mnt", "pid", "ipc"}
    assert "@mount" in found["SystemCallFilter"].split()
    covering_proc = {"ProtectHostname", "ProtectKernelLogs", "ProtectKernelTunables"}
    assert not covering_proc & {*found}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_has_nothing_to_say_of_the_unit(tmp_path: Path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/osmosis/bin/osmosis", "/bin/echo"))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert [line for line in said.stderr.splitlines() if UNIT.name in line] == []


def test_compose_starts_the_command_with_options_that_it_has():
    compose: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    platform = compose["services"]["platform"]
    program, *words = platform["command"]
    assert program == "osmosis"
    assert "--limit-memory" in words
    assert accepts(words)
    assert set(platform["environment"]) <= VARIABLES
    assert (platform["cap_drop"], platform["read_only"]) == (["ALL"], True)
    assert [port for port in platform["ports"] if not port.startswith("127.0.0.1:")] == []
    wanted = {*platform["secrets"], *compose["services"]["database"]["secrets"]}
    assert wanted == set(compose["secrets"])
    names = {volume.partition(":")[0] for each in compose["services"].values()
             for volume in each["volumes"]}  # fmt: skip
    assert names == set(compose["volumes"])


def test_no_url_in_them_has_a_password():
    words = [word for path in FOLDER.iterdir() for word in path.read_text().split()]
    urls = [word.rpartition("=")[2].strip("(),'\"") for word in words if "://" in word]
    assert len(urls) > 3
    assert [url for url in urls if urlsplit(url).password is not None] == []
