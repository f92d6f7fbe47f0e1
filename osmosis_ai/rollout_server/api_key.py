"""The key of a RolloutServer: made at random, compared in constant time."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

__all__ = ["API_KEY_PREFIX", "generate_api_key", "validate_api_key"]

API_KEY_PREFIX = "osm_rollout_"
"""What a generated key begins with, so that it is recognised in a file or a log."""


def generate_api_key() -> str:
    """Return a new key: letters, digits, '-' and '_', with 256 random bits."""
    return API_KEY_PREFIX + secrets.token_urlsafe(32)


def validate_api_key(provided: str | None, expected: str) -> bool:
    """Return whether the given key is the expected one, in a time that tells nothing of either."""
    return hmac.compare_digest(_digest(provided or ""), _digest(expected)) and provided is not None


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
