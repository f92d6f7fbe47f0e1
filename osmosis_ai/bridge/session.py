"""One rollout's account at the bridge: its key, what its calls took, and what was said.

The bridge's thread writes it, the rollout's reads it. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.base import ChatCompletion
from ..models.transport import cassettes
from ..secret import Secret

if TYPE_CHECKING:
    from ..agents.client import ModelLLM
    from ..agents.results import CompletionsResult
    from ..models.other_apis import OtherRequest
    from ..models.passing import Give, Passing
    from .openai import CompletionCall, OtherCall

Message = Mapping[str, Any]


class Account:
    """What `Bridge.open_account` gives to a rollout; `close()` it when the rollout has ended."""

    def __init__(
        self, *, url: str, key: Secret, llm: ModelLLM, on_close: Callable[[Account], None]
    ) -> None:
        self.url = url
        """What OpenAI clients call `base_url`."""
        self.key = key
        """Good for this rollout alone, and until it ends."""
        self.llm = llm
        """The rollout's totals: calls, tokens, cost, retries; and its last error."""
        self.trajectory = Trajectory()
        self._said: dict[str, list[dict[str, Any]]] = {}
        """What was said up to an answer, by the answer's id: calls may name it alone."""
        self._on_close = on_close
        self._caller = cassettes.current.get()
        self._asking: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<Account at {self.url}, {self.llm.num_llm_calls} calls>"

    def close(self) -> None:
        """End the rollout: its key is refused, a call that is under way is cancelled."""
        self.llm.close()
        self._on_close(self)

    async def ask(self, call: CompletionCall, give: Give | None = None) -> CompletionsResult:
        """Forward a call; in the bridge's loop. Parts of a streamed answer are given to `give`."""
        passing = None
        if give is not None:
            from ..models.passing import Passing

            passing = Passing(give)
        try:
            result = await self._asked(call.messages, call.params, passing=passing)
        except asyncio.CancelledError:
            if passing is not None and passing.begun:  # its reader has left it: it is paid for
                answer = ChatCompletion(message=passing.answer())
                self.llm.note_answer(answer)
                self.trajectory.note(call.messages, answer.message)
            raise
        self.trajectory.note(call.messages, result.message)
        for choice in result.further:
            self.trajectory.note(call.messages, choice["message"])
        return result

    async def forward(self, call: OtherCall) -> CompletionsResult:
        """Forward a call of another API; in the bridge's loop."""
        messages = _continued(self._said.get(call.previous or "", []), call.messages)
        result = await self._asked(messages, call.params, call.other)
        if call.is_said:
            self.trajectory.note(messages, result.message)
            if result.document is not None and isinstance(name := result.document.get("id"), str):
                self._said[name] = [*messages, result.message]
        return result

    async def _asked(
        self,
        messages: list[dict[str, Any]],
        params: Mapping[str, Any],
        other: OtherRequest | None = None,
        passing: Passing | None = None,
    ) -> CompletionsResult:
        task = asyncio.current_task()
        assert task is not None
        self._asking.add(task)
        cassettes.current.set(self._caller)  # the bridge's thread serves every run
        try:
            return await self.llm.chat_completions(
                messages, _other=other, _passing=passing, **params
            )
        finally:
            self._asking.discard(task)

    def cancel(self) -> None:
        """Cancel what is under way; in the bridge's loop."""
        for task in self._asking:
            task.cancel()


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One line of messages: what was last sent, and the answer to it."""

    sent: Sequence[Message]
    answer: Message

    def messages(self) -> list[dict[str, Any]]:
        return [dict(message) for message in (*self.sent, self.answer)]


class Trajectory:
    """The conversations of one rollout, in the order in which they were last answered.

    A call that sends an earlier call's messages and more continues that conversation; any other
    begins another.
    """

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
                # Of several answers to the same, the one that is sent back is continued.
                answered = [
                    n for n in known if _is_said(self._conversations[n].answer, sent[length])
                ]
                number = (answered or known)[-1]
                known.remove(number)
                del self._conversations[number]
                break
        self._notes += 1
        self._conversations[self._notes] = _Conversation(sent, dict(answer))
        self._open.setdefault(hashes[-1], []).append(self._notes)

    def last(self) -> list[dict[str, Any]]:
        """Return the conversation of the last answer, with that answer; empty without any."""
        conversation = self._conversations.get(self._notes)
        return [] if conversation is None else conversation.messages()

    def all(self) -> list[dict[str, Any]]:
        """Return the messages of every conversation, one conversation after the other."""
        conversations = list(self._conversations.values())
        return [message for conversation in conversations for message in conversation.messages()]


def _is_said(answer: Message, message: Message) -> bool:
    calls, sent = answer.get("tool_calls") or [], message.get("tool_calls") or []
    same_text = (answer.get("content") or "") == (message.get("content") or "")
    return same_text and [call.get("id") for call in calls] == [call.get("id") for call in sent]


def _continued(said: list[dict[str, Any]], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was said before and now, with one system message: the newest."""
    if not said or not messages or messages[0].get("role") != "system":
        return [*said, *messages]
    before = said[1:] if said[0].get("role") == "system" else said
    return [messages[0], *before, *messages[1:]]


def _hashes(messages: Sequence[Message]) -> Iterator[int]:
    """Yield a hash over the first message, over the first two, and so on."""
    so_far = 0
    for message in messages:
        so_far = hash((so_far, repr(message)))
        yield so_far
