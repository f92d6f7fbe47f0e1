"""What a rollout's pyproject.toml asks for, beyond what the platform's installation has."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from .installed import OURS, Installed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "pyproject.toml"
LOCK_NAME = "uv.lock"
MAX_BYTES = 4 * 1024 * 1024
"""Of each of the two files."""


class EnvironmentProblem(Exception):
    """An environment that cannot be built; a sentence for the log of the run."""


@dataclass(frozen=True, slots=True)
class Project:
    """A pyproject.toml as far as the environment of its code is concerned."""

    file: Path
    text: bytes
    requirements: Sequence[Requirement]
    """Those whose marker holds here."""
    has_sources: bool
    """Whether uv's own table says where packages come from."""
    lock: bytes | None

    @property
    def is_local(self) -> bool:
        """Whether packages may come from the work tree itself."""
        return self.has_sources or any(
            (each.url or "").startswith("file:") for each in self.requirements
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed of a project, and what to say of the rest."""

    requirements: Sequence[str]
    constraints: Sequence[str]
    """What our own installation has already must stay in these ranges."""
    notes: Sequence[str]


def read_project(folder: Path) -> Project | None:
    """Return the project of a rollout's folder; None where it has no pyproject.toml.

    Raises:
        EnvironmentProblem: for a file that cannot be read, or another Python.
    """
    file = folder / FILE_NAME
    text = _read(file)
    if text is None:
        return None
    name = f"{folder.name}/{FILE_NAME}"
    try:
        document = tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise EnvironmentProblem(f"{name} is no TOML: {error}") from None
    about = _table(document, "project")
    _check_python(name, about.get("requires-python"))
    if "dependencies" in (about.get("dynamic") or ()):
        raise EnvironmentProblem(
            f"{name}: its dependencies are dynamic; list them in [project] dependencies"
        )
    wanted = tuple(_requirements(name, about.get("dependencies", [])))
    sources = _table(document, "tool", "uv", "sources")
    return Project(file, text, wanted, bool(sources), _read(folder / LOCK_NAME))


def select(wanted: Sequence[Requirement], own: Installed) -> Wanted:
    """Leave out what our installation is or has; say so of each requirement on ourselves."""
    chosen, kept, notes = [], [], []
    for each in _expanded(wanted, own):
        if canonicalize_name(each.name) in OURS:
            notes.append(f"{each}: the platform's own {own.version} is used")
            notes += _unknown_extras(each, own)
        elif own.has(each):
            if each.specifier:
                kept.append(f"{each.name}{each.specifier}")
            notes.append(f"{each}: the platform has {own.versions[canonicalize_name(each.name)]}")
        else:
            chosen.append(str(each))
    return Wanted(chosen, kept, notes)


def _expanded(wanted: Sequence[Requirement], own: Installed) -> Iterator[Requirement]:
    """Yield the requirements, and what the extras of ours ask for."""
    for each in wanted:
        yield each
        if canonicalize_name(each.name) in OURS:
            for extra in sorted(each.extras):
                yield from own.extras.get(extra, ())


def _unknown_extras(each: Requirement, own: Installed) -> Iterator[str]:
    for extra in sorted(each.extras - own.extras.keys()):
        yield f"{each}: there is no extra {extra} here; name what it brings in the dependencies"


def _read(file: Path) -> bytes | None:
    if not file.is_file():
        return None
    if file.stat().st_size > MAX_BYTES:
        raise EnvironmentProblem(f"{file.name} has more than {MAX_BYTES // 1024**2} MiB")
    return file.read_bytes()


def _table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = document
    for name in names:
        found = found.get(name, {})
        if not isinstance(found, Mapping):
            raise EnvironmentProblem(f"{FILE_NAME}: {'.'.join(names)} must be a table")
    return dict(found)


def _check_python(name: str, wanted: Any) -> None:
    if wanted is None:
        return
    here = platform.python_version()
    try:
        holds = SpecifierSet(wanted).contains(here, prereleases=True)
    except (InvalidSpecifier, TypeError):
        raise EnvironmentProblem(
            f"{name}: requires-python {wanted!r} is no version range"
        ) from None
    if not holds:
        raise EnvironmentProblem(
            f"{name}: requires-python is {wanted!r}, and the platform has Python {here}; widen the "
            "range, or ask its operator for another Python"
        )


def _requirements(name: str, wanted: Any) -> Iterator[Requirement]:
    if not isinstance(wanted, list):
        raise EnvironmentProblem(f"{name}: project.dependencies must be a list")
    for text in wanted:
        try:
            found = Requirement(text)
        except (InvalidRequirement, TypeError):
            raise EnvironmentProblem(f"{name}: {text!r} is no requirement") from None
        if found.marker is None or found.marker.evaluate({"extra": ""}):
            yield found
