"""JSON in one line, written and read with less ado than `json.dumps` and `json.loads`.

Those make an encoder anew for every value and look for blanks around every text, which takes longer
than a small value itself. What comes of it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any


def compact_encoder(*, ensure_ascii: bool) -> Callable[[Any], str]:
    """What `json.dumps(value, allow_nan=False, separators=(",", ":"))` does, only sooner.

    It raises the same, but a RecursionError for a value that contains itself.
    """
    slow = json.JSONEncoder(ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"))
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the accelerator
        return slow.encode
    text = encoder.encode_basestring_ascii if ensure_ascii else encoder.encode_basestring
    pieces = make(None, slow.default, text, None, ":", ",", False, False, False)

    def encode(value: Any) -> str:
        return "".join(pieces(value, 0))

    return encode


def compact_decoder(**options: Any) -> Callable[[str], Any]:
    """What `json.JSONDecoder(**options).decode` does, sooner where no blanks precede a text."""
    slow = json.JSONDecoder(**options)
    scan: Any = getattr(slow, "scan_once")  # noqa: B009 - what raw_decode calls; typeshed lacks it

    def decode(text: str) -> Any:
        try:
            value, end = scan(text, 0)
        except StopIteration:
            return slow.decode(text)  # blanks, or its own words on what is wrong
        return value if end == len(text) or not text[end:].strip(" \t\n\r") else slow.decode(text)

    return decode
