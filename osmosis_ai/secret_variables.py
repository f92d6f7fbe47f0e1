"""Environment variables that hold secrets, known by their names or as connection strings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import unquote

from .secret import Redactor, Secret, is_maskable

SECRET_NAMES = "OSMOSIS_SECRET_NAMES"
"""The variable that names further ones, between spaces, whose values are masked too."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_KEYS = ("API_KEY", "APIKEY", "_ACCESS_KEY", "_SECRET_KEY", "_SECRET", "_TOKEN", "_JWT")
"""Endings of names whose values are secrets whatever they are."""
_OTHERS = ("_KEY", "PASSWORD", "PASSWD", "_CREDENTIALS", "_BEARER_TOKEN_BEDROCK")
"""Endings of names whose values are secrets unless they look like something else."""
_NAME = re.compile(r"(?=.{1,20}$)(?:[a-z]+(?:[_.-][a-z]+)*|[A-Z]+(?:[_.-][A-Z]+)*)")
"""What a key of another kind is: that of a sorted table, a cache, a field."""
_CONNECTION = re.compile(r"://([^\s:/?#@]*):((?:(?!://)\S)+)@")
"""The user and the password of a connection string, up to its last `@`.

A password should quote an `@` and a `/`, and often does not.
"""


def secret_variables(*further: str) -> list[Secret]:
    """Return the secrets in variables by their names, in connection strings, and in further ones.

    A variable of the endings in `_OTHERS` often holds a path, a number or a name instead.
    """
    named = {*further, *os.environ.get(SECRET_NAMES, "").split()}
    found: list[Secret] = []
    for name, value in os.environ.items():
        if value and (name in named or _holds_secret(name, value)):
            found.append(Secret(value, name))
        found.extend(Secret(text, name) for text in _passwords(value))
    return found


def masking(*keys: Secret | None) -> Callable[[str], str]:
    """Return a function that masks these keys and the secrets of the environment.

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
    """Return whether a variable of this name may hold a secret."""
    return name.upper().endswith((*_KEYS, *_OTHERS))


def _holds_secret(name: str, value: str) -> bool:
    if name.upper().endswith(_KEYS):
        return True
    if not is_named_like_a_key(name) or not is_maskable(value) or _is_ordinary(value):
        return False
    return not (name.upper().endswith("_KEY") and _NAME.fullmatch(value))


def _is_ordinary(value: str) -> bool:
    """Return whether a value is a number, the name of a variable, or the path of a file."""
    if value in os.environ:
        return True
    try:
        float(value)
    except ValueError:
        return os.sep in value and os.path.exists(os.path.expanduser(value))
    return True


def _passwords(value: str) -> Iterator[str]:
    """Yield what to mask of connection strings: passwords, beside the user where they are words."""
    for user, longest in _CONNECTION.findall(value):
        for password in {longest, re.split("[/?#]", longest)[0].rpartition("@")[0] or longest}:
            for text in {password, unquote(password)}:
                is_word = not is_maskable(text) or text in value.replace(f":{password}@", "")
                secret = f"//{user}:{text}@" if is_word else text
                if is_maskable(secret):
                    yield secret
