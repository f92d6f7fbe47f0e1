"""What drivers and shards exchange: invitations, and messages on a stream.

A message is its length in four bytes, then its kind and values as JSON. An invitation says where
the driver listens, and has a ticket for one use: worth nothing once it was used, as it may be seen
in the arguments of a task.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, field
from typing import Any

LIMIT = 64 << 20
"""Bytes of one message."""
_PREFIX = 4

ALIVE = "alive"
"""A sign of life, every second, which means nothing else."""
BEAT_S = 1.0
ORDER = "order"
"""The driver's first message to a shard: what it is to run, with the secrets."""
HELLO = "hello"
"""A shard's first message: its ticket."""


class BadMessage(Exception):
    """What was received is no message."""


def frame(kind: str, *values: Any) -> bytes:
    """Return a message as it is sent."""
    text = json.dumps([kind, *values], separators=(",", ":")).encode("ascii")
    return len(text).to_bytes(_PREFIX, "big") + text


async def read_message(
    reader: asyncio.StreamReader, limit: int = LIMIT
) -> tuple[str, list[Any]] | None:
    """Return the next message; None when the other end has closed the stream.

    Raises:
        BadMessage: when it is longer than the limit, or none.
    """
    try:
        size = int.from_bytes(await reader.readexactly(_PREFIX), "big")
        if size > limit:
            raise BadMessage(f"a message of {size:,} bytes")
        content = await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return None
    try:
        kind, *values = json.loads(content)
    except (ValueError, TypeError):
        raise BadMessage("no JSON") from None
    return str(kind), values


NAME = "osmosis-driver"
"""The name in the driver's certificate."""
VARIABLE = "OSMOSIS_SHARD"
"""The variable in which a process finds its invitation."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """To one process of one shard."""

    host: str
    port: int
    certificate: str = field(repr=False)
    """The driver's, as PEM."""
    ticket: str = field(repr=False)

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Invitation:
        """Return what `to_json` gave."""
        return cls(**json.loads(text))
