"""What every measurement works with: a project, endpoints, and commands as observations."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from .endpoint import EndpointProcess
from .measure import environment, execute
from .ours import Project
from .rounds import Observation, Series, interleaved

BARE = Path(__file__).with_name("bare.py")
PLUGINS = Path(__file__).with_name("plugins")
MODES = {"one process": 0, "default": None}
"""Numbers of workers: none, and what the plugin chooses."""
Contender = Callable[[], Observation]


class Bench:
    """A folder, an environment, and endpoints that are started as they are needed."""

    def __init__(self, folder: Path, *, repeats: int, quick: bool) -> None:
        self.folder = folder
        self.repeats = repeats
        self.quick = quick
        self.env = environment(folder)
        self.project = Project(folder)
        self._stack = ExitStack()
        self._endpoints: dict[float, EndpointProcess] = {}

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, *, repeats: int, quick: bool) -> Iterator[Bench]:
        """A bench whose endpoints end with the block."""
        bench = cls(folder, repeats=repeats, quick=quick)
        with bench._stack:
            yield bench

    def size(self, n: int) -> int:
        """Return a number of rollouts, small where only a quick look is wanted."""
        return n // 10 if self.quick else n

    def repeated(self, observe: Contender) -> Series:
        """Observe one contender, round after round."""
        return interleaved({"": observe}, repeats=self.repeats)[""]

    def endpoint(self, latency_s: float) -> EndpointProcess:
        """The endpoint of that latency."""
        if latency_s not in self._endpoints:
            started = self._stack.enter_context(EndpointProcess(latency_s=latency_s))
            self._endpoints[latency_s] = started
        return self._endpoints[latency_s]

    def command(
        self, line: Sequence[str], endpoint: EndpointProcess, *, expect: int | None = 0
    ) -> Contender:
        """Any command that talks to `endpoint`."""

        def observe() -> Observation:
            endpoint.reset()
            cost = execute(line, cwd=self.folder, env=self.env, expect=expect)
            return Observation(cost, endpoint.reset())

        return observe

    def bare(self, latency_s: float, *, n: int, in_flight: int) -> Contender:
        """The bare loop."""
        endpoint = self.endpoint(latency_s)
        line = [sys.executable, str(BARE), endpoint.base_url, str(n), str(in_flight)]
        return self.command(line, endpoint)

    def ours(
        self,
        latency_s: float,
        *,
        n: int,
        in_flight: int,
        processes: int | None = 0,
        agent: str = "agent",
        eval_fn: str | None = "exact",
        more: tuple[str, ...] = (),
        plugin: str | None = None,
    ) -> Contender:
        """An evaluation; its journal is new each time.

        `plugin`: one of `plugins`; what it writes in each process is in the observation.
        """
        endpoint = self.endpoint(latency_s)
        if plugin is not None:
            shutil.copy(PLUGINS / f"{plugin}.py", self.folder)
            more = ("-p", plugin, *more)
        line = self.project.command(
            endpoint.base_url,
            n=n,
            in_flight=in_flight,
            processes=processes,
            agent=agent,
            eval_fn=eval_fn,
            more=more,
        )
        observe = self.command(line, endpoint)

        def afresh() -> Observation:
            shutil.rmtree(self.folder / ".osmosis", ignore_errors=True)
            for path in self.folder.glob("bench_*.json"):
                path.unlink()
            observed = observe()
            written = sorted(self.folder.glob("bench_*.json"))
            return replace(observed, inside=tuple(json.loads(path.read_text()) for path in written))

        return afresh
