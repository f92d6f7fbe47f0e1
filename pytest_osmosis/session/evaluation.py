"""The evaluation within one pytest process, whichever part the process has.

`plugin` calls it in the order of the session's life. Does not know xdist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from osmosis_ai.models.rate_limiter import RateLimiter
from osmosis_ai.secret import mask_everywhere

from .. import api_keys
from ..errors import NoRows
from ..items.collection import EmptyFile, EvalFile
from ..items.redaction import MaskedMessages
from ..items.report_contents import FailureSections, SerializedReports
from ..items.runner import ItemRunner, ItemWatch, is_run_alone
from ..options import effects
from ..options.reader import OptionReader
from ..rollouts.cached import ResultCache
from ..rollouts.pool import RolloutPool
from ..rollouts.prepare import prepare
from ..rollouts.suite import Suite
from ..run_result import RolloutRecord, RunId, RunResult, SuiteInfo
from ..spec import EvalSpec, SessionSpec
from ..storage.fingerprint import EvalFingerprint, fingerprint_of, sources_of
from . import header, preflight
from .gates import SessionGates
from .selection import argument_of, is_below_any, is_in, takes_place_of_tests

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint

    from .seams import Feature


class RunReceiver(Protocol):
    """Who gets what becomes of the runs of a process; from any thread."""

    def ended(self, run: RunId, record: RolloutRecord) -> None:
        """Take a run that has ended."""

    def paced(self, kind: str, not_before_s: float, said: str, place: str) -> None:
        """Note that the endpoint limited the rate, in these words, or answered again."""

    def stuck(self, reason: str) -> None:
        """Note that nothing more can be run in this process."""


class Evaluation:
    """What every process has: the suites, the gates that are collected, the secrets."""

    is_worker = False
    """Whether another process checks the datasets and reports the runs."""

    def __init__(
        self,
        config: pytest.Config,
        spec: SessionSpec,
        features: Sequence[Feature],
        infos: Mapping[str, SuiteInfo],
    ) -> None:
        """`infos` are of all suites of the session, `suites` of those that this process has."""
        self.config = config
        self.spec = spec
        self.features = features
        self.suites: dict[str, Suite] = {}
        self._is_abandoned = False
        self.runner: ItemRunner | None = None
        """There while items run in this process."""
        self._send_text: Callable[[str, str], None] | None = None
        """Sends a feature's text to the same feature in the process that reports."""
        self.base_urls: Mapping[str, str] = {}
        """Where the embedded endpoint listens, by persona."""
        self._endpoints: list[EmbeddedEndpoint] = []
        self._models = [each.model for each in (spec.defaults, *spec.evals) if each is not None]
        self._secrets = api_keys.secrets_of(*self._models)
        mask_everywhere(*self._secrets)
        self.gates = SessionGates(spec, suites=self.suites, infos=lambda: infos, features=features)
        self._no_rows: dict[Path, str] = {}
        self._left_out: list[str] = []
        """What pytest would collect without the evaluation."""
        self.sections = FailureSections(self.suites, self._record)

    # ---- the session's life, as `plugin` calls it

    def plugins(self) -> dict[str, object]:
        """Return what has hooks of pytest from now on, by name; asked once."""
        serialized = SerializedReports(
            self.sections,
            is_worker=self.is_worker,
            is_sent=self._is_sent,
            take_sent=self._take_sent,
        )
        return {
            "osmosis-masked-messages": MaskedMessages(),
            "osmosis-serialized-reports": serialized,
        }

    def narrow_arguments(self) -> None:
        """Have pytest collect the data files: alone when the command line names them.

        Explicit arguments (paths, node ids) stay, and get company only where the command line names
        an agent too, or data for the model alone, and they name none of the data files.
        """
        config, given = self.config, OptionReader(self.config)
        files = {str(each.data): argument_of(config, each.data) for each in self.spec.evals}
        has_paths = config.args_source is config.ArgsSource.ARGS
        names_one = has_paths and any(is_in(text, Path(f)) for text in config.args for f in files)
        evaluates = given.on_command_line("agent") or (
            given.raw("agent") is None and given.on_command_line("data") and not given.naming()
        )
        if not names_one and (not has_paths or evaluates):
            if files and takes_place_of_tests(config):
                if not (given("only") or given.naming()):
                    self._left_out = config.args[:]
                config.args[:] = files.values()
            config.args.extend(
                text for file, text in files.items() if not is_below_any(file, config.args)
            )
        self.choose_gated()

    def choose_gated(self) -> None:
        """Have gates decide on tests, unless pytest collects a data file."""
        files = (str(each.data) for each in self.spec.evals)
        if not any(is_below_any(file, self.config.args) for file in files):
            self.gates.decide_on_tests()

    def start(self) -> None:
        """Check all that options name, before anything is sent or any worker is started."""
        raise NotImplementedError

    def header(self) -> list[str]:
        """Return the lines of the session's header, in the process that has one."""
        return []

    def _header_lines(self) -> list[str]:
        suites = self.suites.values()
        lines = header.header(self.config, self.spec, suites, self._secrets, self.features)
        return [*lines, *header.left_out(self.config, self._left_out)]

    def plan(self) -> list[str]:
        """Return what is going to run, in a line a suite, likewise."""
        return []

    def collector_for(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return the collector of a data file that an evaluation names."""
        if path in self._no_rows:
            return EmptyFile.from_parent(parent, path=path)
        suites = [
            s for s in self.suites.values() if s.spec.data == path and not s.spec.scored_by_test
        ]
        return EvalFile.of(suites, parent, path) if suites else None

    def collected(self, items: list[pytest.Item]) -> None:
        """Note the items that were collected and selected, in a process that collects."""

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the first rollouts of these items, in a process that runs items."""

    def cancel(self) -> None:
        """Start nothing more, and cancel what is in flight: the session is ending."""
        if self.runner is not None:
            self.runner.rollouts.cancel()

    def close_runs(self, session: pytest.Session) -> None:
        """Count no run that ends from now on."""

    def end(self, session: pytest.Session) -> None:
        """Note that all is reported, and let the exit status say whether a signal came before."""

    def check_interrupted_again(self) -> None:
        """Raise the KeyboardInterrupt of a second SIGINT that was lost where it was raised."""

    def abandon(self) -> None:
        """Leave what is in flight behind: `close` waits for no run after this."""
        self.runner = None
        self._is_abandoned = True

    def close(self) -> None:
        """Cancel what is in flight and release everything; harmless when repeated."""
        runner, self.runner = self.runner, None
        if runner is not None:
            runner.close()
            if runner.rollouts.last_words is not None:
                self.config.get_terminal_writer().line(runner.rollouts.last_words)
        for feature in self.features:
            for line in feature.close():
                self.config.get_terminal_writer().line(line)
        while self._endpoints:
            self._endpoints.pop().close()

    def release(self) -> None:
        """Drop the user's code, unless runs that were left behind may still use it."""
        for suite in self.suites.values() if not self._is_abandoned else ():
            suite.release()
        self.suites.clear()

    # ---- suites

    def add(self, suite: Suite) -> None:
        """Add a suite that items will be collected for; raises ConfigurationError."""
        for feature in self.features:
            suite.info = feature.describe(suite)
        self.suites[suite.spec.name] = suite

    def no_rows(self, path: Path, reason: str) -> None:
        """Note a data file of which no row is selected."""
        self._no_rows[path] = reason

    def _record(self, run: RunId) -> RolloutRecord | None:
        """Return what was said in a run."""
        raise NotImplementedError

    def _is_sent(self, result: RunResult) -> bool:
        """Return whether the process that reports has this result ahead of the report."""
        return False

    def _take_sent(self, run: RunId) -> RunResult:
        """Return the result that was sent ahead of a report, once."""
        raise NotImplementedError

    def _find_keys(self) -> None:
        """Find the keys of the models that are asked."""
        with preflight.usage_errors():
            self.spec = api_keys.resolved(self.spec)

    def _prepare(self) -> None:
        """Read rows and import code for the evaluations that options name."""
        with preflight.usage_errors():
            key_variables = api_keys.key_variables(self.spec)
        self.spec = replace(self.spec, key_variables=key_variables)
        for spec in self.spec.evals:
            with preflight.usage_errors(self.config):
                self._prepare_named(spec)
        effects.check_reach(OptionReader(self.config), self.suites.values())
        known = (self.suites.get(each.name) for each in self.spec.evals)
        evals = zip(self.spec.evals, known, strict=True)
        self.spec = replace(
            self.spec, evals=tuple(each if suite is None else suite.spec for each, suite in evals)
        )
        self._honour_limits()

    def _prepare_named(self, spec: EvalSpec) -> None:
        try:
            self.add(self._prepared(spec))
        except NoRows as error:
            self.no_rows(spec.data, str(error))

    def _prepared(self, spec: EvalSpec) -> Suite:
        validate = not self.is_worker
        for feature in self.features:
            if (suite := feature.prepare(spec, self.spec, validate=validate)) is not None:
                return suite
        return prepare(spec, self.spec, validate=validate)

    def _honour_limits(self) -> None:
        """Have no more in flight than all agents together allow, where every one has a limit."""
        limits = [suite.agent.max_concurrent for suite in self.suites.values()]
        known = [limit for limit in limits if limit is not None]
        if limits and len(known) == len(limits) and sum(known) < self.spec.batch_size:
            self.spec = replace(self.spec, batch_size=sum(known))

    def _start_embedded(self) -> None:
        """Start the embedded endpoint, one for each persona that a model names."""
        for persona in dict.fromkeys(each.persona for each in self._models if each.persona):
            self._endpoints.append(preflight.start_embedded(persona))
            self.base_urls = {**self.base_urls, persona: self._endpoints[-1].base_url}

    def _pool(self, receiver: RunReceiver, cache: ResultCache, *, window: int) -> RolloutPool:
        """Return the rollouts of this process, of which `window` may be in flight."""
        around = (
            each.around_runs(self.suites, self._send_text and partial(self._send_text, each.name))
            for each in self.features
        )
        return RolloutPool(
            self.suites,
            window=window,
            pool_size=self.spec.batch_size,
            base_urls=self.base_urls,
            on_finished=receiver.ended,
            rate_limit=RateLimiter(receiver.paced),
            cache=cache,
            around=[each for each in around if each is not None],
            on_stuck=receiver.stuck,
        )

    def _run_with(self, runner: ItemRunner, items: Iterable[pytest.Item]) -> None:
        """Have these items run, as far as they are runs."""
        self.runner = runner
        plugins = self.config.pluginmanager
        plugins.register(runner, "osmosis-runner")
        if runner.phases or not all(map(is_run_alone, items)):
            plugins.register(ItemWatch(runner, self.config), "osmosis-items")

    def _of_tests(self) -> list[Suite]:
        return [suite for suite in self.suites.values() if suite.spec.scored_by_test]

    def _identities(self, suites: Iterable[Suite]) -> list[EvalFingerprint]:
        if not self.spec.keeping.journal:
            return []
        inputs = [pattern for feature in self.features for pattern in feature.inputs()]
        return [
            fingerprint_of(
                suite.spec,
                suite.info,
                suite.dataset,
                roots=self.spec.roots,
                root=self.config.rootpath,
                inputs=[*self.spec.inputs, *inputs],
                config_env=self.spec.config_env,
            )
            for suite in suites
        ]

    def _loaded(self) -> dict[str, dict[str, str]]:
        """Return digests of the files that this process has loaded, by suite and name."""
        roots, root = self.spec.roots, self.config.rootpath
        return {
            name: {
                suite.spec.data.name: suite.info.digest,
                **sources_of(suite.spec, roots=roots, root=root),
            }
            for name, suite in self.suites.items()
        }
