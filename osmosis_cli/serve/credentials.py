"""The login at the platform: the token in the environment, else that of the credentials file.

Only reads, and sends nothing. A token is returned with the platform that issued it, and is valid
for that one only. The file, mode 0600 in a folder of mode 0700:

    {"version": 1,
     "platforms": {"https://platform.osmosis.ai": {
       "active_workspace": "acme",
       "workspaces": {"acme": {
         "user": {"id": "u1", "name": "Ada", "email": "ada@example.com"}, "role": "owner",
         "token": "...", "token_id": "t1", "expires_at": "2027-01-31T12:00:00Z"}}}}}

    Exception
    └── LoginProblem      a login cannot be used; `str()` says why and what to do
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from osmosis_ai.secret import Secret, check_api_key

DEFAULT_PLATFORM = "https://platform.osmosis.ai"
TOKEN = "OSMOSIS_TOKEN"
TOKEN_PLATFORM = "OSMOSIS_TOKEN_PLATFORM_URL"
PLATFORM = "OSMOSIS_PLATFORM_URL"
CONFIG_DIR = "OSMOSIS_CONFIG_DIR"
SKEW_S = 60.0
"""A token that expires so soon is treated as expired."""

_INSTEAD = f"set {TOKEN} to a token of the platform"
_LIMIT = 1024 * 1024
_VERSION = 1


class LoginProblem(Exception):
    """There is a login, but it cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A token and the platform that issued it."""

    platform_url: str
    token: Secret
    workspace: str | None = None
    """None for a token from the environment."""


def find_login(environ: Mapping[str, str] | None = None) -> Login | None:
    """Return the login for the chosen platform, None when there is none; raise LoginProblem."""
    environ = os.environ if environ is None else environ
    platform = platform_url(environ)
    if environ.get(TOKEN):
        return _from_environment(environ, platform)
    return _from_file(credentials_path(environ), platform)


def platform_url(environ: Mapping[str, str]) -> str:
    """Return the platform's origin; raise LoginProblem unless it is https, or http on loopback."""
    text = environ.get(PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        return _origin(text)
    except ValueError as error:
        raise LoginProblem(f"{PLATFORM}: {error}") from None


def credentials_path(environ: Mapping[str, str]) -> Path:
    """Return where a login is stored."""
    if folder := environ.get(CONFIG_DIR):
        return Path(folder).expanduser() / "credentials.json"
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "osmosis" / "credentials.json"


def _from_environment(environ: Mapping[str, str], platform: str) -> Login:
    bound = environ.get(TOKEN_PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        issuer = _origin(bound)
        token = check_api_key(environ[TOKEN], TOKEN)
    except ValueError as error:
        raise LoginProblem(str(error)) from None
    if issuer != platform:
        raise LoginProblem(
            f"{TOKEN} is for {issuer}, but {PLATFORM} names {platform}: if the token was issued "
            f"there, set {TOKEN_PLATFORM} to the same address"
        )
    return Login(platform_url=platform, token=token)


def _origin(text: str) -> str:
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = 0
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not host or not plain or port == 0 or parts.scheme not in ("http", "https"):
        raise ValueError("expected an address like https://platform.osmosis.ai")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError("plain http is for this machine alone; write https://")
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _from_file(path: Path, platform: str) -> Login | None:
    document = _read(path)
    if document is None:
        return None
    if document.get("version") != _VERSION:
        raise _unusable(path, "another version of osmosis has written it")
    platforms = _mapping(document, "platforms", path)
    if platform not in platforms:
        return None
    here = _mapping(platforms, platform, path)
    spaces, name = _mapping(here, "workspaces", path), here.get("active_workspace")
    if not spaces:
        return None
    if not isinstance(name, str) or name not in spaces:
        raise _unusable(path, f"the active workspace for {platform} is none of those in it")
    token = _token(_mapping(spaces, name, path), path)
    return Login(platform_url=platform, token=token, workspace=name)


def _mapping(document: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise _unusable(path, f"{name!r} in it is no table")
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with open(path, "rb", opener=_open_itself) as file:
            _check_private(path, os.fstat(file.fileno()))
            document = json.loads(file.read(_LIMIT).decode("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LoginProblem(f"{path} is a symbolic link: put the file itself there") from None
        raise LoginProblem(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _unusable(path, "it is not JSON") from None
    if not isinstance(document, dict):
        raise _unusable(path, "it is not a JSON object")
    return document


def _open_itself(path: str, flags: int) -> int:
    """Open without following a link, and without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise LoginProblem(f"cannot read {path}: it is no regular file")
    if os.name != "posix":
        return
    if found.st_uid != os.geteuid():
        raise LoginProblem(f"{path} belongs to another user; {_INSTEAD}")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise LoginProblem(f"{path} can be read by others: run `chmod 600 {path}`, or {_INSTEAD}")


def _token(space: Mapping[str, Any], path: Path) -> Secret:
    value, expires = space.get("token"), space.get("expires_at")
    if not isinstance(value, str):
        raise _unusable(path, "its active workspace has no token")
    if not isinstance(expires, str):
        raise _unusable(path, "its active workspace has no expires_at")
    _check_expiry(expires, path)
    try:
        return check_api_key(value, "the token of your login")
    except ValueError as error:
        raise _unusable(path, str(error)) from None


def _check_expiry(text: str, path: Path) -> None:
    try:
        # Python 3.10 cannot parse `Z`.
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise _unusable(path, "its expires_at is no date") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    if moment.timestamp() <= time.time() + SKEW_S:
        raise LoginProblem(f"your login expired on {moment:%Y-%m-%d at %H:%M} UTC: {_INSTEAD}")


def _unusable(path: Path, what: str) -> LoginProblem:
    return LoginProblem(
        f"{path} was left unchanged: {what}; repair it, or move it away and {_INSTEAD}"
    )
