"""The evaluation of a session whose rollouts are run by shards on other machines.

It collects, records, decides and reports as in one process: only where the results of its items
come from is different.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from osmosis_ai.secret_variables import SECRET_NAMES, secret_variables

from ...dataset.sampling import place_in
from ...errors import ConfigurationError
from ...escaping import counted
from ...items.protocol import Rollouts
from ...options.reader import OptionReader
from ...options.table import GROUPS, OPTIONS
from ...rollouts.cached import ResultCache
from ...run_result import RunId
from ...session import preflight
from ...session.reporting_evaluation import LocalEvaluation
from ...session.seams import Feature
from ...spec import SessionSpec
from ...storage.source_digest import input_digests
from . import Shards
from .fleet import Fleet, ShardOrder, make_fleet
from .plan import ShardPlan
from .rollouts import Loaded, ShardRollouts


class DriverEvaluation(LocalEvaluation):
    """An evaluation that has shards run its rollouts."""

    _fleet: Fleet | None = None
    _shard_rollouts: ShardRollouts | None = None
    _known: Loaded
    """Digests of the files that the session began with."""
    _count = 0
    """How many shards there are, once that is known."""
    _place = ""
    """Where they are."""

    @property
    def shards(self) -> Shards:
        """What was asked for."""
        shards: Shards = self.spec.parts["shards"]
        return shards

    def start(self) -> None:
        """Check everything, then connect to where shards run."""
        with preflight.usage_errors():
            self._check_count()
            self._fleet = make_fleet(self.shards)
        super().start()
        self._known = self._loaded()
        with preflight.usage_errors():
            self._place = self._fleet.connect(
                order_of(self.config, self.spec, self._files(), self.features)
            )
        self._count = self._shards()

    def header(self) -> list[str]:
        """Return the lines of the session's header, with where the shards are."""
        shards = counted(self._count, "shard")
        return [*super().header(), f"osmosis: {shards} on {self._place}"]

    def collected(self, items: list[pytest.Item]) -> None:
        """Count the selected runs; refuse tests, which run here."""
        if self._of_tests():
            raise pytest.UsageError(
                f"{self.shards.option} runs the evaluations of data files, not test functions "
                "with the marker osmosis: leave those out with --osmosis-only"
            )
        super().collected(items)

    def begin(self, items: list[pytest.Item]) -> None:
        """Start the shards at once: what ordinary tests patch is not theirs."""
        super().begin(items)
        if self._shard_rollouts is not None and self.runner is not None:
            self.runner.begin_all()

    def _check_count(self) -> None:
        count, batch = self.shards.count, self.spec.batch_size
        if count is not None and count > batch:
            raise ConfigurationError(
                f"{OptionReader(self.config).spelled('shards')} {count}: each shard has a part of "
                f"the batch size, which is {batch}; give --osmosis-batch-size {count} or more, or "
                "fewer shards"
            )

    def _shards(self) -> int:
        """Return how many shards there are: no more than rows, or than the batch size."""
        assert self._fleet is not None
        rows = max(len(suite.dataset) for suite in self.suites.values())
        wanted = self.shards.count or self._fleet.capacity
        return max(1, min(wanted, self.spec.batch_size, rows))

    def _rollouts(self, cache: ResultCache) -> Rollouts:
        assert self._fleet is not None
        self._shard_rollouts = ShardRollouts(
            self.suites,
            self._fleet,
            ShardPlan(self._count, self.spec.batch_size, self._shard_of),
            sink=self,
            cache=cache,
            loaded=self._known,
            keeps_messages=bool(self.config.hook.pytest_osmosis_run_result.get_hookimpls()),
            features=self.features,
        )
        self._fleet.begin(self._shard_rollouts)
        return self._shard_rollouts

    def cancel(self) -> None:
        """Cancel what is in flight, and take what shards had finished: it is reported too."""
        super().cancel()
        if self._shard_rollouts is not None:
            self._shard_rollouts.take_last()
        if self._fleet is not None:
            self._fleet.end()  # while reports are written

    def _shard_of(self, run: RunId) -> int:
        """Return the shard that `--osmosis-shard` would put the run's row into."""
        rows = self.suites[run.suite].dataset.row_indices
        return place_in(rows)(run.row_index) % self._count

    def _files(self) -> Iterator[Path]:
        root = self.config.rootpath
        inputs = input_digests(self.spec.inputs, [root])
        for name in (*(name for files in self._known.values() for name in files), *inputs):
            if (root / name).is_file():
                yield root / name

    def close(self) -> None:
        """End what runs elsewhere, then close the rest."""
        try:
            super().close()
        finally:
            fleet, self._fleet = self._fleet, None
            if fleet is not None:
                fleet.close()


KEY_VARIABLE = "OSMOSIS_SHARD_API_KEY"
"""Where a key given as an option travels."""
_NOT_THEIRS = (
    "api-key", "only", "rows", "run", *(option.name for option in GROUPS["a cluster"]),
)  # fmt: skip
"""Options that shards do not need, or have otherwise."""
LARGE_BYTES = 64 << 20
"""A larger data file outside of the project must be on all machines."""
_DATA = ".osmosis-data"
_SETTINGS = ("OSMOSIS_ROLLOUT_", "LITELLM_")
_ADDRESSES = ("_BASE_URL", "_API_BASE", "_API_VERSION")
_LOGIN = "OSMOSIS_TOKEN"


def order_of(
    config: pytest.Config,
    spec: SessionSpec,
    files: Iterable[Path],
    features: Iterable[Feature] = (),
) -> ShardOrder:
    """Return the order of a session; `files` of the project are needed by its evaluations."""
    root, started = config.rootpath, config.invocation_params.dir
    data = [_place(each.data, root, number) for number, each in enumerate(spec.evals)]
    given = zip(data, spec.evals, strict=True)
    environment = _environment(spec)
    secret = {each.name for each in (*secret_variables(), *spec.key_variables)} | {KEY_VARIABLE}
    folder = str(started.relative_to(root)) if started.is_relative_to(root) else "."
    words, of_features = list(_words(config, spec)), dict[str, Path]()
    for feature in features:
        more_files, more_words = feature.elsewhere(root, folder)
        of_features.update(more_files)
        words += more_words
    return ShardOrder(
        words=words,
        environment=environment,
        secrets=sorted(secret.intersection(environment)),
        root=root,
        folder=folder,
        files={
            **{str(each.relative_to(root)): each for each in files if each.is_relative_to(root)},
            **{place: each.data for place, each in given if not os.path.isabs(place)},
            **of_features,
        },
        data=data,
        silence_s=spec.worker_timeout_s,
    )


def _place(data: Path, root: Path, number: int) -> str:
    """Return the place of a data file in the copy; of a large one elsewhere its own path."""
    if data.is_relative_to(root):
        return str(data.relative_to(root))
    if data.stat().st_size > LARGE_BYTES:
        return str(data)
    return f"{_DATA}/{number}/{data.name}"


def _words(config: pytest.Config, spec: SessionSpec) -> Iterator[str]:
    yield from ("-p", "osmosis", "-p", "no:cacheprovider", "--osmosis-only", "--osmosis-run=always")
    yield from _of_pytest(config)
    given = OptionReader(config)
    for option in OPTIONS:
        if option.name in _NOT_THEIRS or not given.on_command_line(option.name):
            continue
        value = getattr(config.option, option.dest)
        if option.flag:
            yield option.flag_name
        else:
            for each in value if option.repeatable else [value]:
                yield f"{option.flag_name}={each}"
    if spec.defaults is not None and spec.defaults.rows is not None:
        yield f"--osmosis-rows={spec.defaults.rows}"
    if given.on_command_line("api-key"):
        yield f"--osmosis-api-key-env={KEY_VARIABLE}"


def _of_pytest(config: pytest.Config) -> Iterator[str]:
    """Yield the options of pytest that decide what is loaded, and how it is logged."""
    option = config.option
    for plugin in getattr(option, "plugins", None) or ():
        if plugin != "osmosis":
            yield from ("-p", plugin)
    for setting in getattr(option, "override_ini", None) or ():
        yield from ("-o", setting)
    for warning in getattr(option, "pythonwarnings", None) or ():
        yield from ("-W", warning)
    for name, word in {"importmode": "--import-mode", "log_level": "--log-level"}.items():
        if value := getattr(option, name, None):
            yield f"{word}={value}"
    file = getattr(option, "inifilename", None)
    if file:
        yield f"--config-file={file}"


def _environment(spec: SessionSpec, own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of shards: keys, addresses of providers, settings, and those named."""
    shards: Shards = spec.parts["shards"]
    named = shards.settings.get("env", ())
    wanted = {*named, *own.get(SECRET_NAMES, "").split(), SECRET_NAMES}
    wanted |= {secret.name for secret in spec.key_variables}
    wanted |= {each.name for each in secret_variables() if each.name.endswith("_API_KEY")}
    wanted |= {name for name in own if name.startswith(_SETTINGS) or name.endswith(_ADDRESSES)}
    wanted.discard(_LOGIN)
    found = {name: own[name] for name in sorted(wanted) if name in own}
    model = spec.defaults.model if spec.defaults is not None else None
    if model is not None and model.api_key is not None:
        found[KEY_VARIABLE] = model.api_key.reveal()
    return found
