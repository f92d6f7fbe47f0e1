"""Whom to trust over TLS: the one context for every endpoint and trainer. Opens no connection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def tls_context() -> ssl.SSLContext:
    """The usual checks against the authorities of the system, or those in SSL_CERT_FILE.

    Raises ValueError when those variables name nothing that can be used.
    """
    import ssl  # loaded with the first TLS connection at the latest

    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        where = os.environ.get(variable)
        if where and not os.path.exists(where):
            raise ValueError(f"{variable} names {where!r}, which does not exist")
    context = ssl.create_default_context()
    if context.cert_store_stats()["x509"]:
        return context
    if os.environ.get("SSL_CERT_FILE"):
        raise ValueError("SSL_CERT_FILE names a file that holds no certificate")
    directory = ssl.get_default_verify_paths().capath or ""
    if not os.path.isdir(directory) or not os.listdir(directory):
        import certifi  # slim containers have no certificates of their own

        context.load_verify_locations(certifi.where())
    return context
