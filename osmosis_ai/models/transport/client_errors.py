"""What aiohttp's exceptions mean, in words without addresses and error numbers."""

from __future__ import annotations

import errno
import socket
import ssl

import aiohttp

from .exchange import TransportError
from .proxy import Proxy, unreachable

_DATES = "renew it, or set this machine's clock"
_NAME = "call it by a name that its certificate is for"
_CURES = {9: _DATES, 10: _DATES, 62: _NAME, 64: _NAME}
"""By OpenSSL's number: not yet valid, expired, for another host, for another IP address."""


def transport_error(error: Exception, *, replied: bool, proxy: Proxy | None) -> TransportError:
    """Return the fault behind `error`; `replied`: the head of a reply had come before it."""
    cause = error.__cause__ if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ssl.SSLError):
        return _tls_error(cause)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return unreachable(f"the proxy answered '{error.status} {error.message}'", proxy)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return unreachable("no connection in time", proxy)
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
        return TransportError("connection", "too many open files: lower -n or --batch-size")
    if isinstance(error, aiohttp.ClientConnectorError):
        return unreachable(_plain(cause), proxy)
    if is_disconnect(error) or _is_cut_short(error):
        return TransportError("connection", f"the connection was closed {_stage(error, replied)}")
    if isinstance(error, (aiohttp.ClientResponseError, aiohttp.ClientPayloadError)):
        detail = str(getattr(error, "message", "") or error)
        return TransportError("protocol", detail, summary="not an HTTP reply")
    if isinstance(error, OSError):
        return TransportError("connection", _plain(error))
    return TransportError("bad_request", f"the request cannot be sent ({type(error).__name__})")


def is_disconnect(error: Exception) -> bool:
    """Return whether a connection ended that was there."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error, (aiohttp.ServerDisconnectedError, ConnectionError)) or (
        isinstance(error, aiohttp.ClientOSError)
        and error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)
    )


def _is_cut_short(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientPayloadError) and "not completed" in str(error)


def _stage(error: Exception, replied: bool) -> str:
    if replied:
        return "in the middle of the answer"
    begun = isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(
        error.message, str
    )
    return "in the middle of the head" if begun else "before the answer"


def _tls_error(error: ssl.SSLError) -> TransportError:
    if isinstance(error, ssl.SSLCertVerificationError):
        cure = _CURES.get(error.verify_code, "set SSL_CERT_FILE to the authority's certificate")
        return TransportError("tls", f"{error.verify_message.rstrip('.')}; {cure}")
    why = (error.reason or str(error)).replace("_", " ").lower()
    cure = "does the endpoint speak plain http? Else set SSL_CERT_FILE"
    return TransportError("tls", f"{why}; {cure}")


def _plain(error: BaseException | None) -> str:
    """Return what the operating system meant."""
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved (DNS)"
    if not isinstance(error, OSError):
        return type(error).__name__
    for code, words in (
        (errno.ECONNREFUSED, "connection refused"),
        (errno.EHOSTUNREACH, "no route to host"),
        (errno.ENETUNREACH, "network unreachable"),
        (errno.ECONNRESET, "connection reset"),
        (errno.ETIMEDOUT, "connecting timed out"),
    ):
        if error.errno == code or f"[Errno {code}]" in str(error):
            return words
    return error.strerror or type(error).__name__
