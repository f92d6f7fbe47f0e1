"""`.env` files: found, read, and added to the environment without overriding what is set.

A file that the user did not name sets no variable that decides where logins and traffic go, or
which code runs. Values are in no message and no repr.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from ..escaping import printable
from ..providers import keys_sent_to
from ..secret_variables import is_named_like_a_key

NAME = ".env"
MAX_BYTES = 1024 * 1024
_NEVER_FOUND = re.compile(
    r"OSMOSIS_.*|.*_PROXY|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE"
    r"|(?:DY)?LD_.*|PYTHON.*|GIT_.*"
    # Of providers whose credentials are files, or have another beginning.
    r"|(?:VERTEX(?:AI)?|GITHUB_COPILOT|WX|WML)_(?:.*_)?(?:URL|BASE)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"([^_]+)_(?:.*_)?(?:URL|BASE|ENDPOINT|HOST)(?:_.*)?")
"""A provider's address: OPENAI_BASE_URL, AZURE_API_BASE, AWS_ENDPOINT_URL_BEDROCK_RUNTIME, ..."""
_SHOWN = 8
"""Names that a message lists."""


class EnvFileError(Exception):
    """A file that cannot be used, in a sentence without its values."""


@dataclass(frozen=True, slots=True)
class EnvFile:
    """What a file says."""

    path: Path
    values: Mapping[str, str] = field(repr=False)
    """By name; interpolated as python-dotenv does."""
    wrong_lines: tuple[int, ...] = ()
    """Numbers of lines that are no NAME=value, and were left out."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file did to the environment."""

    path: Path
    names: tuple[str, ...]
    """The variables that it set."""
    ignored: tuple[str, ...] = ()
    """Those that it may not set, as the user did not name the file, and that are not set."""
    wrong_lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        """What to say of it, in one line; empty where nothing came of the file."""
        parts = [f"sets {_listed(self.names)}"] if self.names else []
        if self.ignored:
            parts.append(
                f"ignores {_listed(self.ignored)}, which only a file that is named sets "
                f"(--osmosis-env-file {_path_text(self.path)})"
            )
        if self.wrong_lines:
            lines = ", ".join(map(str, self.wrong_lines[:_SHOWN]))
            parts.append(f"leaves out what is no NAME=value (line {lines})")
        return f"{_path_text(self.path)} {', '.join(parts)}" if parts else ""


def find(start: Path) -> Path | None:
    """Return the nearest `.env` from a directory up to the top of its Git work tree.

    Outside of a work tree only the directory itself is looked at. A folder of that name is usually
    a virtual environment, and is passed over.
    """
    start = start.resolve()
    folders = [start, *start.parents]
    top = next((i for i, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return next((path for each in folders[: top + 1] if (path := each / NAME).is_file()), None)


def read(path: Path, *, interpolate: bool = True) -> EnvFile:
    """Return what a file says; raise EnvFileError unless it is a text of a reasonable size."""
    from dotenv import dotenv_values  # 25 ms: only where there is such a file
    from dotenv.parser import parse_stream

    text = _text(path)
    bindings = list(parse_stream(io.StringIO(text)))
    # The library itself would log what it leaves out.
    right = "".join(each.original.string for each in bindings if not each.error)
    found = dotenv_values(stream=io.StringIO(right), interpolate=interpolate)
    values = {name: value for name, value in found.items() if value is not None}
    wrong = tuple(
        _line(each.original.string, each.original.line) for each in bindings if each.error
    )
    return EnvFile(path, values, wrong)


def load(file: EnvFile, environment: MutableMapping[str, str], *, named: bool) -> Loaded:
    """Add a file's values to the environment, where a name is not set.

    `named` is whether the user gave the file: one that was found by itself sets less.
    """
    new = {name: value for name, value in file.values.items() if name not in environment}
    ignored = () if named else tuple(name for name in new if _moves(name, environment))
    added = {name: value for name, value in new.items() if name not in ignored}
    environment.update(added)
    return Loaded(file.path, tuple(added), ignored, file.wrong_lines)


def _moves(name: str, environment: Mapping[str, str]) -> bool:
    """Return whether a variable decides where logins and traffic go, or which code runs.

    A provider's address does where the environment has a key for it.
    """
    if _NEVER_FOUND.fullmatch(name):
        return True
    if (address := _ADDRESS.fullmatch(name)) is None:
        return False
    return not keys_sent_to(name).isdisjoint(environment) or any(
        each.startswith(f"{address[1]}_") and is_named_like_a_key(each) for each in environment
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise EnvFileError(f"{_path_text(path)} cannot be read: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EnvFileError(f"{_path_text(path)} is not UTF-8") from None
    if len(raw) > MAX_BYTES or "\0" in text:
        what = "holds a NUL character" if "\0" in text else "is larger than 1 MiB"
        raise EnvFileError(f"{_path_text(path)} {what}: is it a file of NAME=value lines?")
    return text


def _line(text: str, first: int) -> int:
    """The line at which a statement begins, behind the empty ones before it."""
    return first + len(text) - len(text.lstrip("\n")) if text.strip() else first


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return printable(", ".join(names[:_SHOWN])) + more


def _path_text(path: Path) -> str:
    return printable(os.path.relpath(path))
