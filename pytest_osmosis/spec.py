"""What was asked: one evaluation (`EvalSpec`) and the session it runs in (`SessionSpec`).

Plain frozen values. Knows neither pytest nor where the values came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmosis_ai.secret import Secret

EMBEDDED = "embedded"
"""The model name (or prefix, `embedded/<persona>`) of the endpoint that the project ships."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model under test and how it is asked."""

    model: str
    """A name at `base_url`, or LiteLLM's `provider/model` without one."""
    base_url: str | None = None
    api_key_env: str | None = None
    """The variable that holds the key; None means the provider's usual one."""
    api_key_env_named: bool = False
    """The user named the variable: it must be set."""
    api_key: Secret | None = None
    """A key given as an option; wins over the variable."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """The sampling options that were given, under their names in a chat request."""
    seed: int | None = None
    """Run i of a row is sent `seed + i`."""

    @property
    def persona(self) -> str | None:
        """The embedded endpoint's persona, or None for any other model."""
        head, _, persona = self.model.partition("/")
        if head != EMBEDDED or self.base_url is not None:
            return None
        return persona or "default"


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """One evaluation: an agent on the rows of one data file, scored and held to a threshold."""

    name: str
    """The suite's name: the data file as given, or the node id of a marked test function."""
    agent: str
    data: Path
    model: ModelSpec
    eval_fns: tuple[str, ...] = ()
    """`module:function` each; empty means the rollout's own reward, named `reward`."""
    n: int = 1
    pass_threshold: float = 1.0
    max_turns: int = 10
    limit: int | None = None
    offset: int = 0
    sample: str | None = None
    sample_seed: int = 0
    agent_timeout_s: float = 450.0
    grader_timeout_s: float = 150.0
    marked: bool = False
    """True for a test function with `@pytest.mark.osmosis`, whose asserts decide."""


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What holds for the whole session: throughput and outputs."""

    evals: tuple[EvalSpec, ...] = ()
    """The evaluations asked for by options; marked tests add theirs at collection."""
    defaults: EvalSpec | None = None
    """What a marked test falls back on."""
    batch_size: int = 1
    output: Path | None = None
    answers: bool = True
    debug_dir: Path | None = None
    roots: tuple[Path, ...] = field(default=())
    """Where agents and eval functions are imported from, in order."""
