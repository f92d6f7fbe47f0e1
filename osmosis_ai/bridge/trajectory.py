"""What a rollout's model calls said, put together from the histories that they sent.

A call that sends an earlier call's messages and more goes on with that conversation; any other
begins one of its own. Knows neither HTTP nor keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One line of messages: what was last sent, and the answer to it."""

    sent: Sequence[Message]
    answer: Message

    def messages(self) -> list[dict[str, Any]]:
        return [dict(message) for message in (*self.sent, self.answer)]


class Trajectory:
    """The conversations of one rollout, in the order in which they were last answered."""

    __slots__ = ("_conversations", "_notes", "_open")

    def __init__(self) -> None:
        self._conversations: dict[int, _Conversation] = {}
        self._open: dict[int, list[int]] = {}
        """Numbers of conversations, by a hash over the messages that they were last sent."""
        self._notes = 0

    def __bool__(self) -> bool:
        return bool(self._conversations)

    def note(self, sent: Sequence[Message], answer: Message) -> None:
        """Record an answered call."""
        hashes = list(_hashes(sent))
        for length in range(len(sent) - 1, 0, -1):
            known = self._open.get(hashes[length - 1])
            if known:
                del self._conversations[known.pop()]
                break
        self._notes += 1
        self._conversations[self._notes] = _Conversation(sent, dict(answer))
        self._open.setdefault(hashes[-1], []).append(self._notes)

    def last(self) -> list[dict[str, Any]]:
        """Return the conversation of the last answer, with that answer; empty without any."""
        found = self._conversations.get(self._notes)
        return [] if found is None else found.messages()

    def all(self) -> list[dict[str, Any]]:
        """Return the messages of every conversation, one conversation after the other."""
        each = list(self._conversations.values())
        return [message for conversation in each for message in conversation.messages()]


def _hashes(messages: Sequence[Message]) -> Iterator[int]:
    """Yield a hash over the first message, over the first two, and so on."""
    so_far = 0
    for message in messages:
        so_far = hash((so_far, repr(message)))
        yield so_far
