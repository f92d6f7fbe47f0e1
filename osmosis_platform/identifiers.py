"""Ids, tokens, codes that a person types, names of runs: all random; and times on the wire."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timezone

TOKEN_PREFIX = "osm_"
_TYPED = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, which would make words, and no characters that look alike."""
_ADJECTIVES_TEXT = """
    amber ample bold brave brisk bright calm clear clever cosmic crisp deep eager early fair
    fast fine firm fresh gentle glad golden grand happy honest keen kind light lively lucky
    merry mild modest neat noble plain polite prime proud quick quiet rapid ready sharp silent
    silver simple smooth solid steady still sunny swift tidy vivid warm wise witty
"""
_NOUNS_TEXT = """
    acorn anchor aspen badger basil beacon birch bison brook canyon cedar cliff clover comet
    condor coral crane creek dune eagle ember falcon fern fjord forest garnet glacier grove
    harbor hawk heron island ivory jasper juniper lagoon lake larch lark lynx maple marsh meadow
    mesa moss otter owl pebble pine plover prairie quartz raven reef ridge river robin sparrow
    spruce summit thicket tundra valley walnut willow wren
"""
_ADJECTIVES = _ADJECTIVES_TEXT.split()
_NOUNS = _NOUNS_TEXT.split()


def new_id() -> str:
    """Return an id for an object: 128 random bits, in hexadecimal."""
    return secrets.token_hex(16)


def new_request_id() -> str:
    """Return what names a request in a message and in the log: short, to be read by people."""
    return secrets.token_hex(6)


def new_token() -> str:
    """Return a token for a person or a device: 256 random bits behind a prefix."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest(text: str) -> str:
    """Return the SHA-256 of a token or of a code, which is what is stored of it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def new_user_code() -> str:
    """Return a code that a person compares or types, as `BCDF-GHJK`."""
    letters = "".join(secrets.choice(_TYPED) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def new_run_name() -> str:
    """Return a name for a run, as `swift-otter-3fa8`; the caller sees to it that it is unique."""
    words = secrets.choice(_ADJECTIVES), secrets.choice(_NOUNS)
    return "-".join([*words, secrets.token_hex(2)])


def timestamp(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    if moment is None:
        return None
    text = moment.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
