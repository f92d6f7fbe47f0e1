"""Addresses of machines: which ones are private, and which one this machine is reached at.

Nothing is sent anywhere: what this machine's own address is says its routing table.
"""

from __future__ import annotations

import ipaddress
import re
import socket

from .trainer.address_policy import is_public

__all__ = [
    "PublicIPDetectionError",
    "detect_public_ip",
    "is_private_ip",
    "is_valid_hostname_or_ip",
    "validate_ipv4",
]

_OUTSIDE = ("192.0.2.1", 9)
"""An address for documentation: on every machine the way to it is the way to the internet."""
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


class PublicIPDetectionError(Exception):
    """This machine has no public address of its own."""


def detect_public_ip() -> str:
    """Return this machine's public address; raise PublicIPDetectionError where it has none.

    Behind address translation there is none: give the server its public name as `host` instead.
    """
    cure = "name the host under which others reach it"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_OUTSIDE)  # of a datagram socket: sends nothing
            address = str(probe.getsockname()[0])
    except OSError as error:
        message = f"this machine has no way to the internet ({error.strerror}): {cure}"
        raise PublicIPDetectionError(message) from None
    if not is_public(address):
        message = f"this machine's address is {address}, which others cannot reach: {cure}"
        raise PublicIPDetectionError(message)
    return address


def validate_ipv4(text: str) -> bool:
    """Return whether the text is an IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_private_ip(text: str) -> bool:
    """Return whether the text is an address that is not one machine on the whole internet."""
    try:
        return not is_public(text)
    except ValueError:
        return False


def is_valid_hostname_or_ip(text: str) -> bool:
    """Return whether the text can name a machine: an address, or a host name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        numeric = all(label.isdigit() for label in labels)
        return not numeric and len(text) <= 253 and all(map(_LABEL.fullmatch, labels))
    return True
