"""`mcp:FOLDER` without the MCP SDK, or with a stand-in for it; `tests/with_mcp` has the SDK."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_osmosis.storage.source_digest import source_files
from pytest_osmosis.user_code import mcp_server
from pytest_osmosis.user_code.child_process import ProcessResult, Program
from pytest_osmosis.user_code.import_object import ImportingError
from pytest_osmosis.user_code.load_agent import load_agent_loop


def refused(folder: str, root: Path, *, option: str = "-m/--module") -> str:
    with pytest.raises(ImportingError) as caught:
        load_agent_loop(f"mcp:{folder}", option=option, roots=[root])
    return str(caught.value)


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(mcp_server, "version", lambda name: "2.0.0")
    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "main", raising=False)
    yield
    sys.modules.pop("main", None)


def test_without_the_sdk_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(mcp_server, "version", absent)
    cure = "needs the MCP SDK: pip install 'pytest-osmosis[mcp]'"
    assert refused("tools", tmp_path) == f"--mcp 'tools': {cure}"
    said = refused("tools", tmp_path, option="--osmosis-agent")
    assert said == f"--osmosis-agent 'mcp:tools': {cure}"


@pytest.mark.usefixtures("sdk")
def test_an_sdk_that_cannot_be_imported_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mcp")
    (tmp_path / "mcp.py").write_text("raise RuntimeError('another pydantic')")
    said = refused("tools", tmp_path)
    assert "the MCP SDK cannot be imported (RuntimeError: another pydantic); its newest" in said


@pytest.mark.usefixtures("sdk")
def test_a_folder_that_is_not_there_or_has_no_entry_is_named(tmp_path: Path):
    assert "--mcp 'tools': no folder 'tools' (looked in " in refused("tools", tmp_path)
    (tmp_path / "tools").mkdir()
    assert "no main.py, which makes the MCP server, in " in refused("tools", tmp_path)


SERVERS = """
class FastMCP:
    __module__ = "mcp.server.fastmcp"
"""


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "main.py makes no MCP server; expected one, such as mcp = MCPServer('tools')"),
        ("a, b = FastMCP(), FastMCP()", "main.py has several MCP servers (a, b)"),
        ("raise KeyError('x')", "--mcp 'tools': 'main.py' cannot be imported"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        (
            "from fastmcp import FastMCP",
            "main.py imports fastmcp, which is not installed: pip install 'pytest-osmosis[mcp]' "
            "fastmcp",
        ),
        ("import gone", "--mcp 'tools': 'main.py' imports 'gone', which is missing"),
    ],
)
def test_an_entry_without_one_server_is_reported(tmp_path: Path, text: str, said: str):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "main.py").write_text(SERVERS + text)
    message = refused("tools", tmp_path)
    assert said in message
    assert "-m/--module" not in message


def test_the_files_of_the_folder_belong_to_the_evaluation(tmp_path: Path):
    (tmp_path / "tools" / "more").mkdir(parents=True)
    files = [tmp_path / "tools" / name for name in ("main.py", "more/math.py")]
    for file in files:
        file.touch()
    assert source_files("mcp:tools", [tmp_path]) == files


def test_a_program_that_closes_its_outputs_first_gets_its_whole_input(tmp_path: Path):
    program = Program(
        argv=["sh", "-c", "exec >counted 2>counted; wc -c"],
        cwd=tmp_path,
        env=os.environ,
        stdin=b"x" * 1_000_000,
        on_stderr=lambda text: None,
    )
    assert program.run() == ProcessResult(0, "")
    assert int((tmp_path / "counted").read_text()) == 1_000_000
