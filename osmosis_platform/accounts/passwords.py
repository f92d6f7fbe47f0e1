"""Passwords: scrypt with a salt, the cost written beside the hash."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

MIN_LENGTH = 8
MAX_BYTES = 1024
_COST = 2**14
_BLOCK = 8
_MEMORY = 64 * 1024 * 1024


def hash_password(password: str) -> str:
    """Return what is stored of a password."""
    salt = secrets.token_bytes(16)
    found = _scrypt(password, salt, _COST)
    return "$".join(["scrypt", str(_COST), _text(salt), _text(found)])


def matches(password: str, stored: str | None) -> bool:
    """Return whether it is the password; takes as long when there is none."""
    _, cost, salt, expected = (stored or _NONE).split("$")
    found = _scrypt(password, base64.b64decode(salt), int(cost))
    return hmac.compare_digest(found, base64.b64decode(expected)) and stored is not None


def problem(password: str) -> str | None:
    """Return why it is no password to set."""
    if len(password) < MIN_LENGTH:
        return f"a password has at least {MIN_LENGTH} characters"
    if len(password.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return f"a password has at most {MAX_BYTES} bytes"
    return None


def _scrypt(password: str, salt: bytes, cost: int) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=_MEMORY, dklen=32)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


_NONE = "$".join(["scrypt", str(_COST), _text(bytes(16)), _text(bytes(32))])
