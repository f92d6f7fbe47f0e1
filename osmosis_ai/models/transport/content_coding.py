"""The decoded body of a reply, within a limit on its size.

The client does not decode by itself: aiohttp takes a gzip body that was cut short for a whole one.
"""

from __future__ import annotations

import zlib

from .exchange import TransportError

_MAX_MEMBERS = 100
"""gzip members in one body; each further one copies the rest of the body."""
_GZIP_WBITS = zlib.MAX_WBITS | 16


def decode_body(body: bytes, coding: str, limit: int) -> bytes:
    """Return `body` without its `Content-Encoding`; raise TransportError beyond `limit` bytes."""
    coding = coding.strip().lower()
    if coding in ("", "identity") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        return _decompressed(body, _GZIP_WBITS, limit)
    if coding == "deflate":
        # RFC 9110 means a zlib stream; some servers send the bare deflate stream inside it.
        is_zlib = body[0] & 0x0F == zlib.DEFLATED
        return _decompressed(body, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS, limit)
    raise TransportError("protocol", coding, summary="a body in an unknown encoding")


def too_large(size: int, limit: int) -> TransportError:
    """Return the fault of a body of `size` bytes or more."""
    detail = f"the answer has over {size / 2**20:.0f} of {limit / 2**20:.0f} MiB"
    return TransportError("too_large", detail)


def _decompressed(body: bytes, wbits: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(wbits)
        try:
            part = member.decompress(body, limit - size + 1)
        except zlib.error:
            raise _broken() from None
        size += len(part)
        if size > limit:
            raise too_large(size, limit)
        parts.append(part)
        if not member.eof:
            raise TransportError("protocol", summary="a compressed body cut short")
        body = member.unused_data
        if not body:
            return b"".join(parts)
    raise _broken()


def _broken() -> TransportError:
    return TransportError("protocol", summary="a broken compressed body")
