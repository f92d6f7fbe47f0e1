"""Text from a server, made fit for one line of a terminal, and addresses without what is secret."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..escaping import printable

TEXT_LIMIT = 300
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*)[?#][^\s'\"]*")


def one_line(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return the text on one line: escaped, cut, and its URLs without userinfo and query."""
    flat = " ".join(text[: 8 * limit].split())
    flat = _QUERY.sub(r"\1", _USERINFO.sub("", flat))
    safe = printable(flat)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def origin_of(url: str) -> str:
    """Return `scheme://host:port` of a URL, and nothing else of it; empty when it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or not parts.scheme:
        return ""
    name = f"[{host}]" if ":" in host else host
    return one_line(f"{parts.scheme}://{name}" + (f":{port}" if port else ""))
