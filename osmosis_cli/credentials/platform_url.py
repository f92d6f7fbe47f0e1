"""The address of the platform: chosen by a variable, and encrypted unless it is on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from .login import LoginProblem

DEFAULT_PLATFORM = "https://platform.osmosis.ai"
PLATFORM = "OSMOSIS_PLATFORM_URL"


def platform_url(environ: Mapping[str, str]) -> str:
    """Return the platform's origin; raise LoginProblem unless it is https, or http on loopback."""
    text = environ.get(PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        return origin(text)
    except ValueError as error:
        raise LoginProblem(f"{PLATFORM}: {error}") from None


def origin(text: str) -> str:
    """Return the address without what is usual; raise ValueError unless it is a fine origin."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = 0
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not host or not plain or port == 0 or parts.scheme not in ("http", "https"):
        raise ValueError("expected an address like https://platform.osmosis.ai")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("plain http is for this machine alone; write https://")
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else "")


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine, without a look-up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
