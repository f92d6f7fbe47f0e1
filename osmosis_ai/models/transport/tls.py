"""The TLS context of every endpoint and trainer: which certificates are trusted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, or those in SSL_CERT_FILE.

    Raise ValueError when SSL_CERT_FILE or SSL_CERT_DIR names nothing that can be used.
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
