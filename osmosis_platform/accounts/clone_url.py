"""Where a repository may be cloned from: https, ssh, or a folder that the operator names.

Git runs programs for other schemes (`ext::`), and takes what starts with a dash for an option.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

_SCP = re.compile(
    r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![/:-])[^\s:][^\s]*"
)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:]+")
_USER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")


class CloneUrlError(Exception):
    """A URL that is not cloned from; a sentence that does not repeat it: it may hold a password."""


def check_clone_url(text: str) -> str:
    """Return the URL; raise CloneUrlError for one that is no https, no ssh and no folder."""
    if not text.isprintable() or any(c.isspace() for c in text) or text.startswith("-"):
        raise CloneUrlError("must be one https or ssh URL, or the path of a folder")
    if text.startswith("/"):
        return _folder(text)
    if "::" not in text and _SCP.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        host, user, password, _ = parts.hostname, parts.username, parts.password, parts.port
    except ValueError:
        raise CloneUrlError("cannot be read as a URL") from None
    if parts.scheme == "file":
        return _folder(parts.path)
    if parts.scheme not in ("https", "ssh"):
        raise CloneUrlError("must start with https:// or ssh://, or be the path of a folder")
    if host is None or not _HOST.fullmatch(host):
        raise CloneUrlError("must name a host")
    if password is not None or (user is not None and parts.scheme == "https"):
        raise CloneUrlError("must hold no user and no password; give git a credential helper")
    if (user is not None and not _USER.fullmatch(user)) or parts.path.startswith("/-"):
        raise CloneUrlError("has a name that ssh or git would take for an option")
    return text


def _folder(text: str) -> str:
    path = Path(text)
    if not path.is_absolute() or not path.is_dir():
        raise CloneUrlError("there is no such folder")
    if not (path / ".git").exists() and not (path / "objects").is_dir():
        raise CloneUrlError("the folder is no Git repository, bare or with a work tree")
    return str(path)
