"""Digests of the files that an evaluation depends on: a module's file, the project's own files that
it imports, directly or not, and the files that patterns name.

Imports are read from the text, so that those inside functions count too; what is imported from
installed packages is left out.
"""

from __future__ import annotations

import ast
import glob
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from osmosis_ai.loaded_modules import loaded_module

from ..errors import ConfigurationError
from ..user_code.agent import MCP


def input_digests(patterns: Iterable[str], roots: Sequence[Path]) -> dict[str, str]:
    """Return digests by file, relative to the first root that holds it.

    Raises:
        ConfigurationError: when a pattern matches no file, or a file cannot be read.
    """
    found: dict[Path, str] = {}
    for pattern in patterns:
        files = [path for path in map(Path, glob.glob(pattern, recursive=True)) if path.is_file()]
        if not files:
            raise ConfigurationError(f"--osmosis-inputs {pattern!r}: no file matches")
        for file in files:
            try:
                found[file] = _digest(file.read_bytes())
            except OSError as error:
                raise ConfigurationError(
                    f"--osmosis-inputs {str(file)!r}: cannot be read: {error.strerror or error}"
                ) from None
    return _named(found, roots)


def _named(found: Mapping[Path, str], roots: Sequence[Path]) -> dict[str, str]:
    """Return the digests by name; files outside of the roots may share one, and then a digest."""
    named: dict[str, list[str]] = {}
    for file, digest in found.items():
        named.setdefault(_show_file(file, roots), []).append(digest)
    return {
        name: own[0] if len(own) == 1 else _digest("".join(sorted(own)).encode())
        for name, own in sorted(named.items())
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def source_files(spec: str, roots: Sequence[Path]) -> list[Path]:
    """The files behind `module:attribute` or `path/to/file.py:attribute`, once it was loaded.

    Of a command, the files that its words name; of an MCP server, those of its folder.
    """
    if spec.startswith(MCP):
        from ..user_code.mcp_server import sources

        return sources(spec.removeprefix(MCP), roots)
    source = spec.rpartition(":")[0].strip()
    module = None if source == "cmd" else loaded_module(source)
    if module is not None:
        return [] if module.__file__ is None else [Path(module.__file__).resolve()]
    words = [source] if source.endswith(".py") else _words(spec)
    places = [folder / word for word in words for folder in (Path.cwd(), *roots)]
    return list(dict.fromkeys(place.resolve() for place in places if place.is_file()))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command.partition(":")[2])
    except ValueError:
        return []


def digests(files: Iterable[Path], roots: Sequence[Path]) -> dict[str, str]:
    """Digest by file, relative to the first root that holds it, of files and what they import."""
    found: dict[Path, str] = {}
    for file in files:
        _walk(file, roots, found)
    return _named(found, roots)


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the names that have not the same digest in both, sorted."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _walk(file: Path, roots: Sequence[Path], found: dict[Path, str]) -> None:
    waiting = [file]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        try:
            source = file.read_bytes()
        except OSError:
            continue  # it was loaded from somewhere else than a plain file
        found[file] = _digest(source)
        for name in _imported(source, file):
            waiting.extend(_files_of(name, [_package_top(file), *roots]))


def _package_top(file: Path) -> Path:
    """The folder from which the file's module has its full name."""
    top = file.parent
    while (top / "__init__.py").is_file() and top != top.parent:
        top = top.parent
    return top


def _imported(source: bytes, file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # no Python: its digest alone counts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file)
            if base:
                yield base
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _imported_by_call(node)


def _imported_by_call(call: ast.Call) -> Iterator[str]:
    """Yield the module of `importlib.import_module("name")`, where the name is written out."""
    called = getattr(call.func, "attr", getattr(call.func, "id", None))
    if called == "import_module" and call.args and isinstance(call.args[0], ast.Constant):
        name = call.args[0].value
        if isinstance(name, str) and not name.startswith("."):
            yield name


def _absolute(node: ast.ImportFrom, file: Path) -> str:
    if not node.level:
        return node.module or ""
    parts = file.parent.relative_to(_package_top(file)).parts
    kept = parts[: len(parts) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _files_of(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """The files of a module and of the packages above it, where they belong to the project."""
    parts = name.split(".")
    for folder in dict.fromkeys(folders):
        for depth in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:depth])
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file() and "site-packages" not in file.parts:
                    yield file.resolve()


def _show_file(file: Path, roots: Sequence[Path]) -> str:
    for root in roots:
        if file.is_relative_to(root):
            return file.relative_to(root).as_posix()
    return file.name
