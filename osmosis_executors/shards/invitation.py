"""What a shard's process is started with: where the driver listens, and a ticket for one use.

The ticket is worth nothing once it was used: it may be seen in the arguments of a task.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

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
