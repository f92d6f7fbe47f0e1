"""The platform's own installation, on which every environment is laid.

It satisfies each requirement on `osmosis-ai`, whatever version that names. What it consists of says
which versions of other packages an environment may have, so that ours still works there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "pytest-osmosis"
OURS = frozenset({"osmosis-ai", NAME})
"""The names that our own installation stands for."""
_NOT_FOR_ROLLOUTS = frozenset({"dev", "platform"})
_SITE = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Installed:
    """Our own distribution with all that it needs, as it is installed here."""

    versions: Mapping[str, str]
    """By canonical name."""
    ranges: tuple[str, ...]
    """What these distributions ask of each other, as lines of a constraints file."""
    extras: Mapping[str, tuple[Requirement, ...]]
    """What each extra of ours asks for."""
    folders: tuple[Path, ...]
    """Where Python finds them."""

    @property
    def version(self) -> str:
        """Our own."""
        return self.versions[NAME]

    def has(self, wanted: Requirement) -> bool:
        """Return whether a requirement is satisfied already."""
        found = self.versions.get(canonicalize_name(wanted.name))
        if found is None or wanted.url is not None or wanted.extras:
            return False
        return wanted.specifier.contains(found, prereleases=True)


@functools.cache
def installed() -> Installed:
    """Return what is installed here; it is looked up once."""
    versions: dict[str, str] = {}
    ranges: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    extras = _extras()
    waiting = [(NAME, frozenset(_whole(extras)))]
    while waiting:
        name, with_extras = waiting.pop()
        found = _distribution(name)
        if found is None or (name, with_extras) in seen:
            continue
        seen.add((name, with_extras))
        versions[name] = found.version
        for wanted in _requirements(found, with_extras):
            other = canonicalize_name(wanted.name)
            waiting.append((other, frozenset(wanted.extras)))
            if wanted.specifier:
                ranges.add(f"{other}{wanted.specifier}")
    return Installed(versions, tuple(sorted(ranges)), extras, tuple(_folders()))


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None  # of another system or Python


def _requirements(found: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """Return what a distribution needs here, with these of its extras."""
    wanted = map(Requirement, found.requires or ())
    names = ["", *extras]
    return [
        each
        for each in wanted
        if each.marker is None or any(each.marker.evaluate({"extra": name}) for name in names)
    ]


def _extras() -> dict[str, tuple[Requirement, ...]]:
    ours = distribution(NAME)
    always = {*map(str, _requirements(ours, ()))}
    return {
        extra: tuple(each for each in _requirements(ours, [extra]) if str(each) not in always)
        for extra in ours.metadata.get_all("Provides-Extra") or ()
    }


def _whole(extras: Mapping[str, Sequence[Requirement]]) -> Iterator[str]:
    """Yield the extras that are installed and can be of use to a rollout."""
    for extra, wanted in extras.items():
        if extra not in _NOT_FOR_ROLLOUTS and all(_distribution(each.name) for each in wanted):
            yield extra


def _folders() -> list[Path]:
    """Return the folders of packages on the path of this process, and that of our own code."""
    found = [Path(each) for each in sys.path if Path(each).name in _SITE]
    return [*dict.fromkeys([*found, Path(__file__).resolve().parents[2]])]
