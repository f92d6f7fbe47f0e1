"""The address of a platform: an origin, https or on this machine, to which a token may be sent."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def platform_origin(text: str) -> str:
    """Return `scheme://host:port` of an address.

    Raise ValueError unless it is https, or http on loopback, without userinfo, path and query.
    """
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = 0
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not host or not plain or port == 0 or parts.scheme not in ("http", "https"):
        raise ValueError("expected an address like https://platform.osmosis.ai")
    if not is_private(text):
        raise ValueError("plain http is for this machine alone; write https://")
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else "")


def is_private(url: str) -> bool:
    """Return whether what is sent there is read by no third party: https, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, in its plain spellings only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
