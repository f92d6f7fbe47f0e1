"""The rollouts of one process: its engine, the models that it has opened, and who is told.

A run is named by its key: suite name, position in the suite's selection of rows, run index.
Knows nothing of pytest, nor of other processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from .engine import Engine
from .output import capture
from .preparation import open_model
from .results import RunResult
from .suite import Finished, Suite
from .threads import CallThreads

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatModel

    from .spec import ModelSpec


class RunKey(NamedTuple):
    """Names one run within a session."""

    suite: str
    position: int
    run_index: int


class Rollouts:
    """Starts runs in the order in which they are coming, and hands out what became of them."""

    def __init__(
        self,
        suites: Mapping[str, Suite],
        *,
        window: int,
        base_urls: Mapping[str, str],
        on_finished: Callable[[RunKey, RunResult], None],
    ) -> None:
        self._suites = suites
        self._base_urls = base_urls
        self._on_finished = on_finished
        self._pool_size = max(window, 1)
        self._models: dict[int, ChatModel] = {}
        self._threads = CallThreads()
        self.halted: str | None = None
        """Why nothing more is started, once that is so."""
        self._engine: Engine[Finished] = Engine(
            cast("Callable[[Hashable], Awaitable[Finished]]", self._execute),
            window=window,
            run_ahead=max(256, 8 * window),
            on_close=self._close_models,
        )

    def coming(self, keys: Iterable[RunKey]) -> None:
        """The next runs, in order; consumed as they start."""
        self._engine.offer(keys)

    def resize(self, window: int) -> None:
        """This process may now have `window` rollouts in flight."""
        self._engine.resize(window)

    def result(self, key: RunKey) -> Finished:
        """What became of a run; waits for it. `EngineClosed` when it will not be run."""
        return self._engine.wait(key)

    def halt(self, reason: str) -> None:
        """Start no further run."""
        if self.halted is None:
            self.halted = reason
            self._engine.halt()

    def close(self) -> None:
        """Cancel what is in flight and release everything."""
        self._engine.close()
        self._threads.close()

    async def _execute(self, key: RunKey) -> Finished:
        suite = self._suites[key.suite]
        captured = capture()

        async def model() -> ChatModel:
            return self._model(suite.spec.model)

        finished = await suite.run(
            key.position, key.run_index, model=model, run_sync=self._threads.run
        )
        finished.sections = captured.sections()
        self._on_finished(key, finished.result)
        if finished.result.fatal:
            self.halt(finished.result.error or "the endpoint refuses every call")
        return finished

    def _model(self, spec: ModelSpec) -> ChatModel:
        model = self._models.get(id(spec))
        if model is None:
            model = open_model(spec, base_urls=self._base_urls, pool_size=self._pool_size)
            self._models[id(spec)] = model
        return model

    async def _close_models(self) -> None:
        for model in self._models.values():
            await model.aclose()
