"""Why a request has no recorded reply: the recorded request that is nearest, and what differs.

Knows values of requests; does not know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ...escaping import shortened
from .folder import Calls
from .lines import Request, RunKey, encode

_MOST_COMPARED = 500
_CONTEXT = 3
"""Words on either side of those that differ."""
_MOST_SHOWN = 2
_SHOWN_CHARS = 160


def explain(request: Request, run: RunKey, calls: Calls) -> str:
    """Return a sentence about a request that has no reply for this run."""
    owners = [
        key for key, replies in calls.of_run.items() if any(r == request.id for r, _ in replies)
    ]
    if owners:
        return (
            f"no answer is recorded for this run: its request is recorded for {_runs(owners)}, "
            "as often as these have made it"
        )
    nearest = _nearest(request, run, calls)
    if nearest is None:
        return "no answer is recorded for this request, and no other request either"
    key, found = nearest
    differences = _differences(found, request.value, {**calls.parts, **request.parts})
    more = len(differences) - _MOST_SHOWN
    shown = "; ".join(differences[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return f"no answer is recorded for this request; in the nearest one, of {_runs([key])}, {shown}"


def _runs(keys: list[RunKey]) -> str:
    suite, row, run = min(keys)
    named = f"row {row}, run {run}" if suite else "no run"
    return named if len(keys) == 1 else f"{named} and {len(keys) - 1} more"


def _nearest(
    request: Request, run: RunKey, calls: Calls
) -> tuple[RunKey, Mapping[str, Any]] | None:
    """Return the recorded request with most in common: first among those of the same row."""
    same = [key for key in calls.of_run if key[1] == run[1]]
    asked = {*_named_parts(request.value).items()}
    found = (
        (key, value)
        for key in islice(same or calls.of_run, _MOST_COMPARED)
        for name, _ in calls.of_run[key]
        if (value := calls.requests.get(name)) is not None
    )

    def common(kept: tuple[RunKey, Mapping[str, Any]]) -> int:
        parts = _named_parts(kept[1])
        return 2 * len(asked.intersection(parts.items())) - len(parts)

    return max(found, key=common, default=None)


def _named_parts(value: Mapping[str, Any]) -> dict[str, str]:
    """Return what a request is made of: fields as JSON, items of lists by their IDs."""
    found = {name: encode(value[name]) for name in ("method", "path", "text") if name in value}
    body = value.get("json")
    if isinstance(body, dict):
        found.update({name: encode(field) for name, field in body.items()})
    for name, ids in value.get("lists", {}).items():
        found.update({f"{name}[{index}]": part for index, part in enumerate(ids)})
    return found


def _differences(
    recorded: Mapping[str, Any], asked: Mapping[str, Any], parts: Mapping[str, Any]
) -> list[str]:
    before, now = _named_parts(recorded), _named_parts(asked)
    return [
        _difference(name, parts, before.get(name), now.get(name))
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]


def _difference(name: str, parts: Mapping[str, Any], before: str | None, now: str | None) -> str:
    """Say which part differs, and in which words."""
    old, new = (None if each is None else parts.get(each, each) for each in (before, now))
    role = next((p.get("role") for p in (new, old) if isinstance(p, dict) and "role" in p), None)
    if role is not None:
        name = f"{name} ({role})"
    words = [[] if each is None else _words(each) for each in (old, new)]
    if words[0] == words[1]:
        words = [[encode(old)], [encode(new)]]
    start = _common(*words)
    end = _common(*(each[start:][::-1] for each in words))
    was, is_now = (
        _quoted(each[max(0, start - _CONTEXT) : len(each) - max(0, end - _CONTEXT)])
        for each in words
    )
    return f"{name} was {was} and is {is_now}"


def _common(one: list[str], other: list[str]) -> int:
    """Return with how many equal words both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _words(value: Any) -> list[str]:
    """Return a value as words: of a message what it says, and then what else it has."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        rest = {name: each for name, each in value.items() if name not in ("role", "content")}
        return [*value["content"].split(), *([encode(rest)] if rest else [])]
    return (value if isinstance(value, str) else encode(value)).split()


def _quoted(words: Iterable[str]) -> str:
    text = shortened(" ".join(words), _SHOWN_CHARS)
    return f'"{text}"' if text else "nothing"
