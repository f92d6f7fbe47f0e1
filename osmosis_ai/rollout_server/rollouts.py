"""The records of a server's rollouts: found again by identity, kept for a while, bounded in size.

A record goes from queued to running to ended, and its result from pending to delivered. Decides
what is the same init and what is a conflict; runs and sends nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..secret import Secret
from .execution import RolloutOutcome
from .http.messages import Refused

if TYPE_CHECKING:
    from .http.init_body import Init

State = Literal["queued", "running", "ended"]
Delivery = Literal["none", "pending", "delivered", "refused", "expired"]
"""none: not ended yet; expired: the trainer could not be reached for an hour."""


@dataclass(slots=True, kw_only=True, eq=False)
class ServedRollout:
    """One rollout, from its init until its record is dropped."""

    rollout_id: str
    identity: str
    digest: str
    server_url: str
    admitted: asyncio.Future[bytes]
    """The answer to the init, once there is one."""
    key: Secret | None = None
    size: int = 0
    """Bytes of the init's body that are held for it."""
    state: State = "queued"
    outcome: RolloutOutcome | None = None
    delivery: Delivery = "none"
    accepted_at: float = field(default_factory=time.monotonic)
    started_at: float = 0.0
    ended_at: float = 0.0
    """Monotonic, as the other two."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of the result that are still held."""
        return len(self.outcome.body) if self.outcome else 0


class Registry:
    """All records of one server."""

    def __init__(self, *, ttl_s: float, max_kept_bytes: int) -> None:
        self._ttl_s = ttl_s
        self._max_kept_bytes = max_kept_bytes
        self._by_identity: dict[str, ServedRollout] = {}
        self._by_id: dict[str, ServedRollout] = {}
        self._ended: OrderedDict[str, ServedRollout] = OrderedDict()
        """By rollout id, the oldest first."""
        self.kept_bytes = 0
        """Bytes of all results that are held."""

    def get(self, rollout_id: str) -> ServedRollout | None:
        """Return the record of that rollout."""
        return self._by_id.get(rollout_id)

    def find(self, init: Init) -> ServedRollout | None:
        """Return the rollout that this init started before; raise Refused (409) if it differs."""
        known = self._by_identity.get(init.identity) or self._by_id.get(init.request.rollout_id)
        if known is not None and known.digest != init.digest:
            message = "this rollout was started before, with another body"
            raise Refused(409, "conflict", message)
        return known

    def begin(self, init: Init) -> ServedRollout:
        """Return a new record for what this init asks for."""
        rollout = ServedRollout(
            rollout_id=init.request.rollout_id,
            identity=init.identity,
            digest=init.digest,
            server_url=init.request.server_url,
            admitted=asyncio.get_running_loop().create_future(),
            key=init.key,
            size=init.size,
        )
        self._by_identity[rollout.identity] = rollout
        self._by_id[rollout.rollout_id] = rollout
        return rollout

    def note_end(self, rollout: ServedRollout, outcome: RolloutOutcome) -> None:
        """The rollout has ended: keep its result until that is delivered and old."""
        rollout.state, rollout.outcome, rollout.delivery = "ended", outcome, "pending"
        rollout.ended_at = time.monotonic()
        self._ended[rollout.rollout_id] = rollout
        self.kept_bytes += rollout.kept_bytes
        self._shrink()

    def note_delivery(self, rollout: ServedRollout, delivery: Delivery) -> None:
        """What became of the result."""
        rollout.delivery = delivery
        self._shrink()

    def remove(self, rollout: ServedRollout) -> None:
        """Forget a record."""
        self._by_identity.pop(rollout.identity, None)
        self._by_id.pop(rollout.rollout_id, None)
        if self._ended.pop(rollout.rollout_id, None) is not None:
            self.kept_bytes -= rollout.kept_bytes

    def old(self) -> list[ServedRollout]:
        """Return expired records; not those whose result is being delivered."""
        oldest = time.monotonic() - self._ttl_s
        expired = []
        for rollout in self._ended.values():
            if rollout.ended_at > oldest:
                break
            if rollout.delivery != "pending":
                expired.append(rollout)
        return expired

    def _shrink(self) -> None:
        """Drop the oldest results that were taken or refused while all take too many bytes.

        Those that were given up are forgotten soon.
        """
        if self.kept_bytes <= self._max_kept_bytes:
            return
        for rollout in self._ended.values():
            done = rollout.delivery in ("delivered", "refused")
            if done and rollout.outcome and rollout.outcome.body:
                self.kept_bytes -= rollout.kept_bytes
                rollout.outcome = RolloutOutcome(rollout.outcome.status, b"", rollout.outcome.error)
                if self.kept_bytes <= self._max_kept_bytes:
                    return
