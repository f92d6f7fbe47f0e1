"""Plain http to another machine, where everybody on the way reads along: no key that is not named.

Knows neither options nor what is asked.
"""

from __future__ import annotations

from ..providers import address_from_environment, host_of
from .transport.base_url import normalise_base_url


def is_read_along(url: str) -> bool:
    """Return whether what is sent to `url` can be read on its way; ValueError: no address."""
    address = normalise_base_url(url)
    return address.scheme == "http" and not address.is_loopback


def check_usual_key(provider: str, variable: str, *, naming: str) -> None:
    """Raise ValueError where the provider's address, in a variable too, must not get the key.

    LiteLLM takes such an address, with the key, as it is; `naming` is what the user does to send
    it.
    """
    address = address_from_environment(provider).strip()
    if address.lower().startswith("http://") and is_read_along(address):
        raise ValueError(
            f"{variable} is not sent over plain http to {host_of(provider)}: {naming} to send it"
        )
