"""Environment variables that hold secrets, known by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache

from .secret import Redactor, Secret

SECRET_NAMES = "OSMOSIS_SECRET_NAMES"
"""The variable that names further ones, between spaces, whose values are masked too."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_ENDINGS = (
    *("API_KEY", "APIKEY", "_ACCESS_KEY", "_SECRET_KEY", "_SECRET", "_TOKEN", "_JWT"),
    # Names that providers gave to theirs.
    *("_BEARER_TOKEN_BEDROCK", "GIGACHAT_CREDENTIALS", "VERTEXAI_CREDENTIALS"),
    *("VERTEX_CREDENTIALS", "AZURE_PASSWORD", "AZURE_CERTIFICATE_PASSWORD"),
)
"""Endings of variables whose values are masked in all output: judges and tools have keys too."""


def secret_variables(*further: str) -> list[Secret]:
    """Return the values of the variables that are named like keys, and of further ones."""
    names = {*_named_like_keys(), *further}
    return [Secret(os.environ[name], name=name) for name in names if os.environ.get(name)]


def masking(*keys: Secret | None) -> Callable[[str], str]:
    """Return a function that masks these keys and the variables that are named like keys.

    What it needs is made when it is first called: that takes a while, and most rollouts need none.
    """

    @cache
    def redactor() -> Redactor:
        return Redactor([*keys, *secret_variables()])

    def masked(text: str) -> str:
        return redactor()(text)

    return masked


def may_name_a_variable(text: str) -> bool:
    """Return whether a variable can have this name; else it may be a key in the wrong place."""
    return _VARIABLE.fullmatch(text) is not None


def is_named_like_a_key(name: str) -> bool:
    """Return whether a variable of this name holds a secret."""
    return name.endswith(_ENDINGS)


def _named_like_keys() -> set[str]:
    named = os.environ.get(SECRET_NAMES, "").split()
    return {*filter(is_named_like_a_key, os.environ), *named}
