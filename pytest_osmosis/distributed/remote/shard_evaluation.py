"""The evaluation in the session of a shard: it prepares the suites, and runs their rollouts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ...items import capture
from ...items.runner import own_rollouts
from ...rollouts.cached import ResultCache
from ...session import preflight
from ...session.evaluation import Evaluation
from ...session.signals import leave_to_controller
from ...spec import EvalSpec, SessionSpec
from .shard import ShardRuns
from .shard_plugin import ShardPlugin

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint


class ShardEvaluation(Evaluation):
    """An evaluation whose items are elsewhere."""

    is_worker = True

    def __init__(self, config: pytest.Config, spec: SessionSpec, plugin: ShardPlugin) -> None:
        spec = _moved(spec, plugin)
        super().__init__(config, spec, {})
        self._plugin = plugin
        plugin.serve = self.serve
        self._endpoints: dict[str, EmbeddedEndpoint] = {}

    def start(self) -> None:
        """Read rows and import code; the driver has checked them."""
        leave_to_controller()
        self._prepare()
        for persona in preflight.personas(self.spec):
            self._endpoints[persona] = preflight.start_embedded(persona)

    def header(self) -> list[str]:
        """Return nothing: the driver prints it."""
        return []

    def plan(self) -> list[str]:
        """Return nothing: the driver prints it."""
        return []

    def collected(self, items: list[pytest.Item]) -> None:
        """Do nothing: there are none."""

    def begin(self, items: list[pytest.Item]) -> None:
        """Do nothing: the driver says which runs there are."""

    def serve(self) -> None:
        """Run what the driver orders."""
        suites = self.suites
        link = self._plugin.link
        runs = ShardRuns(link, suites)
        end_routing = capture.route(self.config)
        rollouts = own_rollouts(
            self.spec,
            suites,
            runs,
            window=0,
            base_urls={name: each.base_url for name, each in self._endpoints.items()},
            cache=ResultCache(suites),
        )
        try:
            runs.serve(rollouts, self._loaded())
            link.flush()
        finally:
            rollouts.close()
            end_routing()

    def close(self) -> None:
        """Close what was opened."""
        super().close()
        while self._endpoints:
            self._endpoints.popitem()[1].close()


def _moved(spec: SessionSpec, plugin: ShardPlugin) -> SessionSpec:
    """Return the spec with the paths of the copy in the place of the driver's."""
    before, now = f"{plugin.driver_root}/", f"{plugin.root}/"

    def moved(text: str) -> str:
        return now + text.removeprefix(before) if text.startswith(before) else text

    def all_moved(each: EvalSpec) -> EvalSpec:
        return replace(
            each,
            agent=moved(each.agent),
            eval_fns=tuple(map(moved, each.eval_fns)),
            grader=None if each.grader is None else moved(each.grader),
        )

    evals = zip(spec.evals, plugin.data, strict=True)
    return replace(
        spec,
        evals=tuple(replace(all_moved(each), data=data) for each, data in evals),
        defaults=None if spec.defaults is None else all_moved(spec.defaults),
    )
