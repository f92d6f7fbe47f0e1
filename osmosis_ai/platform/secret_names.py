"""Which of a user's secrets a run gets: by name and scope. No value ever leaves the platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .answers import text_of
from .client import PlatformClient
from .environment_secrets import SCOPES, list_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSecrets:
    """The secrets that a run asks for."""

    scopes: Mapping[str, str] = field(default_factory=dict)
    """By name: `personal` or `workspace`."""
    missing: tuple[str, ...] = ()


def resolve_secrets(client: PlatformClient, required: Sequence[str]) -> ResolvedSecrets:
    """Return which secrets of the platform a run gets; asks nothing when it needs none."""
    if not required:
        return ResolvedSecrets()
    found = list_secrets(client).items
    records = [(text_of(item, "name"), text_of(item, "scope")) for item in found]
    scopes = {name: scope for name in required if (scope := _scope(name, records))}
    return ResolvedSecrets(
        scopes=scopes, missing=tuple(name for name in required if name not in scopes)
    )


def _scope(name: str, records: Iterable[tuple[str | None, str | None]]) -> str | None:
    scopes = {scope for known, scope in records if known == name}
    return next((shown for shown, scope in SCOPES.items() if scope in scopes), None)
