"""Replies that the bridge writes while the model answers, in the events of each API.

Nothing is written before the first part has come: until then a failure has its own status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..http_server import EVENT_STREAM_HEADERS
from .openai import problem_of, usage_of

if TYPE_CHECKING:
    from aiohttp import web

    from ..agents.results import CompletionsResult
    from ..models.errors import ProviderError


class ChunkStream:
    """Chat completions: the endpoint's chunks, under the evaluated model's name."""

    def __init__(self, request: web.BaseRequest, *, model: str, with_usage: bool) -> None:
        self._request = request
        self._model = model
        self._usage = {"usage": None} if with_usage else {}
        self._frame: dict[str, Any] = {}
        self.response: web.StreamResponse | None = None
        """What is being written; None before the first part."""

    async def give(self, event: Mapping[str, Any]) -> None:
        """Write a chunk; its usage stands behind all of them, where it was asked for."""
        chunk = {**event, "model": self._model, **self._usage}
        if not self._usage:
            chunk.pop("usage", None)
        self._frame = self._frame or {k: v for k, v in chunk.items() if k != "choices"}
        await self._write(chunk)

    async def end(self, result: CompletionsResult) -> web.StreamResponse:
        """End the reply to a call that was answered."""
        if self._usage:
            await self._write({**self._frame, "choices": [], "usage": usage_of(result)})
        return await self._ended(b"data: [DONE]\n\n")

    async def broken(self, error: ProviderError) -> web.StreamResponse:
        """End the reply to a call whose answer broke off: clients raise what they are given."""
        await self._write({"error": problem_of(error)})
        return await self._ended(b"")

    async def _ended(self, last: bytes) -> web.StreamResponse:
        assert self.response is not None
        await self.response.write_eof(last)
        return self.response

    async def _write(self, event: Mapping[str, Any]) -> None:
        if self.response is None:
            from aiohttp import web

            self.response = web.StreamResponse(headers=EVENT_STREAM_HEADERS)
            await self.response.prepare(self._request)
        data = json.dumps(event, ensure_ascii=True).encode("ascii")
        await self.response.write(b"data: " + data + b"\n\n")
