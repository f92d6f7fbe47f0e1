"""`mcp:FOLDER` to an agent loop: the tools of the MCP server that the folder's `main.py` makes."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .agent import MCP
from .import_object import ImportingError, load_module, user_traceback

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop

ENTRY = "main.py"
_SERVERS = frozenset({"FastMCP", "MCPServer"})
_SDKS = frozenset({"mcp", "fastmcp"})


def load_mcp_agent(spec: str, *, option: str, roots: Sequence[Path]) -> RolloutAgentLoop:
    """Return the agent loop of a folder's MCP server; ImportingError says why there is none."""
    plugin = option.startswith("--osmosis-")
    prefix = f"{option} {spec!r}" if plugin else f"--mcp {spec.removeprefix(MCP)!r}"
    _require_sdk(prefix)
    entry = _folder(spec, prefix, roots) / ENTRY
    if not entry.is_file():
        raise ImportingError(f"{prefix}: no {ENTRY}, which makes the MCP server, in {entry.parent}")
    try:
        module = load_module(str(entry), option=option, roots=roots, prefix=prefix)
    except ImportingError as error:
        if "imports 'fastmcp', which is missing" not in str(error):
            raise
        raise ImportingError(
            f"{prefix}: {ENTRY} imports fastmcp, which is not installed: "
            "pip install 'pytest-osmosis[mcp]' fastmcp"
        ) from None
    server = _server(module, prefix)
    from osmosis_ai.agents.mcp_agent import McpAgent, connect_to

    try:
        return McpAgent(partial(connect_to, server))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's server: its error is the message
        raise ImportingError(
            f"{prefix}: its tools cannot be listed\n{user_traceback(error)}"
        ) from None


def sources(folder: str, roots: Sequence[Path]) -> list[Path]:
    """Return the Python files of a server's folder."""
    places = (place / folder for place in (Path.cwd(), *roots))
    found = next((place for place in places if place.is_dir()), None)
    return [] if found is None else sorted(path.resolve() for path in found.rglob("*.py"))


def _require_sdk(prefix: str) -> None:
    try:
        version("mcp")
    except PackageNotFoundError:
        raise ImportingError(
            f"{prefix}: needs the MCP SDK: pip install 'pytest-osmosis[mcp]'"
        ) from None
    try:
        importlib.import_module("mcp")  # before a project's folder of that name can be found
    except Exception as error:  # noqa: BLE001 - versions that do not go together: any error
        raise ImportingError(
            f"{prefix}: the MCP SDK cannot be imported ({type(error).__name__}: {error}); "
            "its newest version: pip install --upgrade mcp"
        ) from None
    logger = logging.getLogger("mcp")
    if logger.level == logging.NOTSET:  # a server of its version 1 tells of every call
        logger.setLevel(logging.WARNING)


def _folder(spec: str, prefix: str, roots: Sequence[Path]) -> Path:
    named = spec.removeprefix(MCP)
    for place in (Path.cwd(), *roots):
        if named and (place / named).is_dir():
            return (place / named).resolve()
    raise ImportingError(f"{prefix}: no folder {named!r} (looked in {Path.cwd()})")


def _server(module: ModuleType, prefix: str) -> Any:
    """Return the one server that the module holds; one called `mcp` counts for more."""
    found = {id(value): name for name, value in vars(module).items() if _is_server(value)}
    names = sorted(found.values())
    if len(names) > 1 and "mcp" in names:
        names = ["mcp"]
    if len(names) != 1:
        what = f"has several MCP servers ({', '.join(names)})" if names else "makes no MCP server"
        raise ImportingError(
            f"{prefix}: {ENTRY} {what}; expected one, such as mcp = MCPServer('tools') "
            "(FastMCP in version 1 of the SDK)"
        )
    return getattr(module, names[0])


def _is_server(value: object) -> bool:
    return not inspect.isclass(value) and any(
        base.__name__ in _SERVERS and base.__module__.partition(".")[0] in _SDKS
        for base in type(value).__mro__
    )
