"""What an evaluation is made of: whether two of them are the same, and what they differ in.

A run may be taken over from one session to the next only when all of this is the same, but for n
and the number of rows where that is asked for. Rows are compared one by one. How fast it runs is no
part of it. Knows neither journals nor pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api_keys import sent_besides
from ..dataset.validation import DIGEST_LENGTH
from ..escaping import shortened
from ..run_result import SuiteInfo
from ..spec import EvalSpec
from .source_digest import differing, digests, input_digests, source_files

if TYPE_CHECKING:
    from ..dataset.dataset import Dataset
    from .run_lines import RowRun

_NOT_COMPARED = frozenset(
    {
        "name",
        "data",
        "model",
        "n",
        "limit",
        "offset",
        "rows",
        "where",
        "quarantine",
        "sample",
        "sample_seed",
        "part",
        "scored_by_test",
        "label",
        "leader",
        "companion_of",
    }
)
"""Fields of a spec that select what is run, or are compared separately."""
_NOT_GIVEN: tuple[object, ...] = (None, [])
_SHOWN_LIMIT = 60


@dataclass(frozen=True)
class RunPlan:
    """The rows and runs of an evaluation."""

    n: int
    indices: Sequence[int]
    """Row indices, ascending."""
    digests: str
    """The rows' digests, one behind the other."""
    names: Sequence[str] | None = None
    """The rows' names in node ids; None for `row-<index>`."""

    @classmethod
    def of(cls, dataset: Dataset, n: int) -> RunPlan:
        """Return the plan for the rows of a dataset."""
        indices = list(dataset.row_indices)
        names = [dataset.row_name(row_index) for row_index in indices]
        return cls(
            n=n,
            indices=indices,
            digests="".join(dataset.row_digest(index) for index in indices),
            names=None if names == _usual_names(indices) else names,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunPlan:
        """Return the plan that `to_json` gave."""
        indices = [index for first, stop in data["rows"] for index in range(first, stop)]
        return cls(data["n"], indices, data["digests"], data.get("names"))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "n": self.n,
            "rows": list(_ranges(self.indices)),
            "digests": self.digests,
            "names": None if self.names is None else list(self.names),
        }

    @property
    def total(self) -> int:
        """Return how many runs it has."""
        return len(self.indices) * self.n

    @property
    def digest_of(self) -> dict[int, str]:
        """Return the digest of each row, by its index."""
        starts = range(0, len(self.digests), DIGEST_LENGTH)
        digests = (self.digests[at : at + DIGEST_LENGTH] for at in starts)
        return dict(zip(self.indices, digests, strict=True))

    def runs(self) -> Iterator[RowRun]:
        """Return all of them."""
        return ((row, run) for row in self.indices for run in range(self.n))

    @cached_property
    def row_of_name(self) -> Mapping[str, int]:
        """Row index by the name that the row has in node ids."""
        return dict(zip(self.names or _usual_names(self.indices), self.indices, strict=True))

    def changed_rows(self, before: RunPlan) -> int:
        """Return how many rows of both plans are not what they were."""
        old = before.digest_of
        return sum(old.get(index, digest) != digest for index, digest in self.digest_of.items())

    def lost_rows(self, before: RunPlan) -> int:
        """Return how many rows are no longer there."""
        return len({*before.indices}.difference(self.indices))


def _usual_names(indices: Sequence[int]) -> list[str]:
    return [f"row-{index}" for index in indices]


def _ranges(indices: Iterable[int]) -> Iterator[list[int]]:
    current: list[int] = []
    for index in indices:
        if current and index == current[1]:
            current[1] += 1
        else:
            if current:
                yield current
            current = [index, index + 1]
    if current:
        yield current


@dataclass(frozen=True, slots=True)
class EvalFingerprint:
    """All that one evaluation is made of."""

    info: SuiteInfo
    asked: Mapping[str, Any]
    """What was asked, by the words that a message uses for it."""
    sources: Mapping[str, str]
    """Digests of the code, by file."""
    plan: RunPlan
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Digests of the files that the agent reads."""
    config_env: Mapping[str, str] = field(default_factory=dict)
    """Digests of the variables of a config file's [env], by name."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EvalFingerprint:
        """Return the fingerprint that `to_json` gave; earlier versions had less."""
        info, plan = SuiteInfo.from_dict(data["info"]), RunPlan.from_json(data["plan"])
        further = (data.get(name, {}) for name in ("inputs", "config_env"))
        return cls(info, data["asked"], data["sources"], plan, *further)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "info": self.info.to_dict(),
            "asked": dict(self.asked),
            "sources": dict(self.sources),
            "plan": self.plan.to_json(),
            "inputs": dict(self.inputs),
            "config_env": dict(self.config_env),
        }

    def changes(self, before: Mapping[str, Any], plan: RunPlan) -> list[str]:
        """Return what keeps runs of a kept evaluation, by its header and plan, from being used."""
        return [
            *_changed_values(before["asked"], self.asked),
            *_changed_files(before["sources"], self.sources, "the source of "),
            *_changed_files(before.get("inputs", {}), self.inputs),
            *_changed_variables(before.get("config_env", {}), self.config_env),
            *_changed_dataset(plan, self.plan),
        ]

    def resized(self, plan: RunPlan) -> list[str]:
        """Return how n and the rows differ from those of a kept plan."""
        old, new = len(plan.indices), len(self.plan.indices)
        found = [] if plan.n == self.plan.n else [f"n was {plan.n} and is {self.plan.n}"]
        if old != new:
            found.append(f"{old} {'row was' if old == 1 else 'rows were'} selected and {new} now")
        elif list(plan.indices) != list(self.plan.indices):
            found.append("other rows are selected")
        return found


def fingerprint_of(
    spec: EvalSpec,
    info: SuiteInfo,
    dataset: Dataset,
    *,
    roots: Sequence[Path],
    root: Path,
    inputs: Sequence[str] = (),
    config_env: Mapping[str, str] | None = None,
) -> EvalFingerprint:
    """Return the fingerprint of an evaluation whose code is loaded; `root` is the project's.

    Raises:
        ConfigurationError: when one of the patterns in `inputs` matches no file.
    """
    return EvalFingerprint(
        info=info,
        asked=_identity_facts(spec, info),
        sources=sources_of(spec, roots=roots, root=root),
        plan=RunPlan.of(dataset, spec.n),
        inputs=input_digests(inputs, [root, *roots]),
        config_env=config_env or {},
    )


def sources_of(spec: EvalSpec, *, roots: Sequence[Path], root: Path) -> dict[str, str]:
    """Return digests of an evaluation's code, by file, once it was loaded."""
    named = [name for name in (spec.agent, spec.grader, *spec.eval_fns) if name]
    files = [file for name in named for file in source_files(name, roots)]
    if spec.scored_by_test:
        files.append(root / spec.name.partition("::")[0])
    return digests(files, [root, *roots])


def _identity_facts(spec: EvalSpec, info: SuiteInfo) -> dict[str, Any]:
    model = spec.model
    endpoint = info.endpoint if model.persona is not None else model.base_url
    sampling = {
        **model.sampling,
        "seed": model.seed,
        **model.stand_in,
        **sent_besides(model),
    }
    names = [name for name in spec.__dataclass_fields__ if name not in _NOT_COMPARED]
    return {
        "model": model.model,
        "endpoint": endpoint or info.endpoint,
        **{_words(name): _plain(getattr(spec, name)) for name in names},
        **{_words(name): value for name, value in sampling.items() if value is not None},
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _words(name: str) -> str:
    return name.removesuffix("_s").replace("_fns", "_functions").replace("_", " ")


def _changed_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        # A version that did not know an option yet has not kept it: it was not given.
        if before != after and not (before in _NOT_GIVEN and after in _NOT_GIVEN):
            yield f"{name} was {_show_value(before)} and is {_show_value(after)}"


def _show_value(value: Any) -> str:
    if value in _NOT_GIVEN:
        return "not given"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shortened(text, _SHOWN_LIMIT)


def _changed_files(old: Mapping[str, str], new: Mapping[str, str], what: str = "") -> Iterator[str]:
    changed = differing(old, new)
    if changed:
        more = f" and {len(changed) - 3} more files" if len(changed) > 3 else ""
        has = "have" if len(changed) > 1 and not what else "has"
        yield f"{what}{', '.join(changed[:3])}{more} {has} changed"


def _changed_variables(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    changed = differing(old, new)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        yield f"[env] of the config file has changed ({', '.join(changed[:3])}{more})"


def _changed_dataset(old: RunPlan, new: RunPlan) -> Iterator[str]:
    changed = new.changed_rows(old)
    if changed:
        differ = "differs" if changed == 1 else "differ"
        yield f"dataset changed since ({changed} of {len(old.indices)} rows {differ})"
