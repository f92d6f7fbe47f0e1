"""What the rollout that is running prints and logs.

A context variable says which rollout that is: it holds in the tasks that the rollout starts, in
`asyncio.to_thread`, and from Python 3.14 on in every thread. Knows no stream; see `items.capture`
for those of pytest.
"""

from __future__ import annotations

from contextvars import ContextVar

from ..secret import redact

MAX_STREAM_CHARS = 64 * 1024
"""Characters of one stream that are kept: the first and the last half of that."""

_current: ContextVar[Captured | None] = ContextVar("osmosis_captured", default=None)


class _ClippedText:
    """A text of which the head and the tail are kept."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._room = MAX_STREAM_CHARS // 2
        self._tail = ""
        self._dropped = 0

    def write(self, text: str) -> None:
        if self._room > 0:
            self._head.append(text[: self._room])
            text, self._room = text[self._room :], self._room - len(text)
        if text:
            self._tail += text
            excess = len(self._tail) - MAX_STREAM_CHARS // 2
            if excess > MAX_STREAM_CHARS // 2:
                self._dropped += excess
                self._tail = self._tail[excess:]

    def text(self) -> str:
        dropped, tail = self._dropped, self._tail
        if len(tail) > MAX_STREAM_CHARS // 2:
            dropped += len(tail) - MAX_STREAM_CHARS // 2
            tail = tail[-MAX_STREAM_CHARS // 2 :]
        head = "".join(self._head)
        if not dropped:
            return redact(head + tail)
        gap = f"\n[... {dropped} characters left out ...]\n"
        return redact.beginning(head) + gap + redact.end(tail)


class Captured:
    """What one rollout wrote."""

    __slots__ = ("texts",)

    def __init__(self) -> None:
        self.texts: dict[str, _ClippedText] = {}
        """By kind: stdout, stderr or log."""

    def write(self, kind: str, text: str) -> None:
        """Keep text of one kind."""
        clipped = self.texts.get(kind)
        if clipped is None:
            clipped = self.texts[kind] = _ClippedText()
        clipped.write(text)

    def sections(self) -> list[tuple[str, str]]:
        """Title and redacted text of each kind, as pytest reports hold them and workers send them.

        pytest's own streams replace what UTF-8 cannot hold, too.
        """
        return [
            (
                f"Captured {kind} rollout",
                kept.text().encode(errors="backslashreplace").decode(),
            )
            for kind, kept in self.texts.items()
        ]


def capture() -> Captured:
    """Keep in the result what this task, and those that it starts, write from now on."""
    captured = Captured()
    _current.set(captured)
    return captured


def current_rollout() -> Captured | None:
    """Return the output of the rollout that calls this; None outside of rollouts."""
    return _current.get()
