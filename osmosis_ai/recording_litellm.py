"""`record(litellm)`: the calls that user code, and the frameworks that it uses, make by LiteLLM.

Its `completion` and `acompletion` are wrapped in the module itself, where frameworks find them.
Outside a rollout they are what they were; our own calls are not recorded twice.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .agents.context import get_rollout_context
from .agents.errors import OsmosisRolloutError
from .blocking import run_blocking
from .models.base import ChatCompletion, price
from .models.chunks import joined_chunks
from .models.client_exceptions import provider_error_of
from .models.litellm.library import is_ours
from .models.parsing import read_usage
from .models.progress import CallProgress
from .models.transport import cassettes
from .recording import calls_of

if TYPE_CHECKING:
    from .agents.context import RolloutContext


def record_litellm(litellm: Any) -> None:
    """Record the module's calls from now on; harmless when repeated."""
    if not hasattr(litellm.completion, "osmosis_recorded"):
        litellm.completion = _wrapped(litellm.completion)
        litellm.acompletion = _awaited(litellm.acompletion)


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def completion(*args: Any, **kwargs: Any) -> Any:
        call = _call_of(args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        run_blocking(call.wait())
        with call.asking():
            reply = function(*args, **kwargs)
        return _Stream(reply, call) if kwargs.get("stream") else call.answered(reply)

    completion.osmosis_recorded = True  # type: ignore[attr-defined]
    return completion


def _awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def acompletion(*args: Any, **kwargs: Any) -> Any:
        call = _call_of(args, kwargs)
        if call is None:
            return await function(*args, **kwargs)
        await call.wait()
        with call.asking():
            reply = await function(*args, **kwargs)
        return _Stream(reply, call) if kwargs.get("stream") else call.answered(reply)

    return acompletion


def _call_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call | None:
    """Return the call that these arguments make; None outside a rollout, and for our own."""
    ctx = get_rollout_context()
    if ctx is None or not ctx.has_llm or is_ours() or kwargs.get("acompletion"):
        return None
    if cassettes.inserted is not None:
        raise OsmosisRolloutError(
            "calls of record(litellm) can be neither recorded on disk nor replayed: leave out "
            "--osmosis-record and --osmosis-replay, or ask by a client of OpenAI"
        )
    named = {**dict(zip(("model", "messages"), args, strict=False)), **kwargs}
    return _Call(ctx, named)


class _Call:
    """One call that is on its way, and the reading of its answer."""

    def __init__(self, ctx: RolloutContext, arguments: Mapping[str, Any]) -> None:
        self._pace, self._prices = ctx.rate_limit, ctx.price_per_mtok
        self._model = str(arguments.get("model"))
        self._calls = calls_of(ctx)
        provider, slash, _ = self._model.partition("/")
        self.progress = CallProgress(provider if slash else "openai", None)
        self.progress.is_streamed = bool(arguments.get("stream"))
        given = arguments.get("messages") or []
        messages = [_plain(message) for message in given]
        self._answers = self._calls.begin(messages, self.progress, is_retry=False)
        self._paced = False

    async def wait(self) -> None:
        """Wait where the endpoint has asked for a pause."""
        if self._pace is not None:
            await self._pace.acquire()

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Note the failure of what is called within."""
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        if not self.progress.is_streamed:
            self._pace_on("ok")

    def failed(self, error: BaseException) -> None:
        """Note that there is no answer."""
        found = provider_error_of(error)
        if found is not None:
            self._calls.failed(found)
        kind = None if found is None else found.kind
        self._pace_on(kind if kind in ("rate_limited", "overloaded") else "failed")
        self._calls.end(self.progress)

    def _pace_on(self, outcome: Any) -> None:
        """Tell the shared pace, once, how the call ended."""
        if self._pace is not None and not self._paced:
            self._paced = True
            self._pace.record_response(outcome, 0.0)

    def answered(self, reply: Any) -> Any:
        """Note an answer, and return it."""
        try:
            data = reply.model_dump()
            cost = (getattr(reply, "_hidden_params", None) or {}).get("response_cost")
            self._take(data, cost)
        finally:
            self._calls.end(self.progress)
        return reply

    def joined(self, chunks: list[dict[str, Any]]) -> None:
        """Note the answer that a stream brought, as far as it was read."""
        try:
            self._pace_on("ok")
            if chunks:
                self._take(joined_chunks(chunks), None)
        finally:
            self._calls.end(self.progress)

    def _take(self, data: Mapping[str, Any], cost: Any) -> None:
        choice = data["choices"][0]
        message = {name: value for name, value in choice["message"].items() if value is not None}
        usage, cost_usd = read_usage(data.get("usage"))
        completion = ChatCompletion(
            message={"content": None, **message},
            finish_reason=choice.get("finish_reason"),
            usage=usage,
            model=data.get("model") or self._model,
            cost_usd=cost_usd,
            latency_ms=self.progress.waited_s * 1000.0,
        )
        if self._prices is not None:
            price(completion, self._prices)
        if completion.cost_usd is None and cost:
            completion.cost_usd = float(cost)
        self._calls.answered(self._answers, completion)


class _Stream:
    """A stream of LiteLLM, read when it ends or is left; otherwise it is that stream."""

    def __init__(self, stream: Any, call: _Call) -> None:
        self._stream = stream
        self._call = call
        self._chunks: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        with self._recorded():
            for chunk in self._stream:
                self._note(chunk)
                yield chunk

    async def __aiter__(self) -> AsyncIterator[Any]:
        with self._recorded():
            async for chunk in self._stream:
                self._note(chunk)
                yield chunk

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        try:
            yield
        except GeneratorExit:
            self._call.joined(self._chunks)
            raise
        except Exception as error:
            self._call.failed(error)
            raise
        self._call.joined(self._chunks)

    def _note(self, chunk: Any) -> None:
        self._call.progress.is_arriving = True
        self._chunks.append(chunk.model_dump())


def _plain(message: Any) -> dict[str, Any]:
    """Return a message as a dict: LiteLLM takes its own objects, too."""
    if isinstance(message, Mapping):
        return dict(message)
    plain: dict[str, Any] = message.model_dump(exclude_none=True)
    return plain
