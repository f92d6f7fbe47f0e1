"""The address of the platform, chosen by a variable."""

from __future__ import annotations

from collections.abc import Mapping

from osmosis_ai.platform.address import platform_origin

from .login import LoginProblem

DEFAULT_PLATFORM = "https://platform.osmosis.ai"
PLATFORM = "OSMOSIS_PLATFORM_URL"


def platform_url(environ: Mapping[str, str]) -> str:
    """Return the platform's origin; raise LoginProblem unless it is https, or http on loopback."""
    text = environ.get(PLATFORM, "").strip() or DEFAULT_PLATFORM
    try:
        return platform_origin(text)
    except ValueError as error:
        raise LoginProblem(f"{PLATFORM}: {error}") from None
