"""What was asked: one evaluation (`EvalSpec`) and the session it runs in (`SessionSpec`).

Plain values. Knows neither pytest nor where the values came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from osmosis_ai.secret import Secret

EMBEDDED = "embedded"
"""The model name (or prefix, `embedded/<persona>`) of the endpoint that the project ships."""

USUAL_KEY = "OPENAI_API_KEY"
"""The variable of the key of a base URL, unless another is named."""

CONFIG_ENV = "OSMOSIS_CONFIG_ENV"
"""The variable that holds the names of a config file's [env], between spaces."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model under test and how it is asked."""

    model: str
    """A name at `base_url`, or LiteLLM's `provider/model` without one."""
    base_url: str | None = None
    """Without its query."""
    query: Secret | None = None
    """What goes behind the `?` of each call, such as `api-version=2024-06-01`."""
    api_key_env: str | None = None
    """The variable that holds the key; None means the provider's usual one."""
    api_key_env_named: bool = False
    """The user named the variable: it must be set."""
    api_key: Secret | None = None
    """A key given as an option; wins over the variable."""
    no_key: str = ""
    """Why none is sent to a base URL, unless its variable is named."""
    option: str = "--osmosis-model"
    """The option that names it."""
    role: str = field(default="", compare=False)
    """What it is beside the first model of the session."""
    remark: str = field(default="", compare=False)
    """What is said behind where it is asked."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """The sampling options that were given, under their names in a chat request."""
    seed: int | None = None
    """Run i of a row is sent `seed + i`."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request."""
    headers: Mapping[str, Secret] = field(default_factory=dict)
    """Further headers of each call; the name of a value is `$VARIABLE` where it was given so."""
    price_per_mtok: tuple[float, ...] | None = None
    """Dollars per million tokens of prompts, of completions and maybe of cached prompts, where no
    other price is known."""
    stand_in: Mapping[str, str] = field(default_factory=dict)
    """What answers in the model's place, by the name of its setting in reports."""
    needs_key: bool = True
    """Whether requests are sent."""
    is_asked: bool = True
    """Whether the evaluation asks it: else the agent does, which is given its name alone."""

    @property
    def persona(self) -> str | None:
        """The embedded endpoint's persona, or None for any other model."""
        head, _, persona = self.model.partition("/")
        if head != EMBEDDED or self.base_url is not None or not self.is_asked:
            return None
        return persona or "default"

    def for_agent(self, *, takes_name: bool, is_asked: bool) -> ModelSpec:
        """Return what of it an agent is evaluated with: all, its name alone, or nothing."""
        if is_asked:
            return self
        return ModelSpec(
            model=self.model if takes_name else "",
            option=self.option,
            role=self.role,
            price_per_mtok=self.price_per_mtok,
            stand_in=self.stand_in,
            is_asked=False,
        )

    @property
    def sends_requests(self) -> bool:
        """Whether not every request is answered by what stands in."""
        return self.needs_key or not self.stand_in

    def option_for(self, what: str) -> str:
        """Return the option of its base URL, or of the variable of its key."""
        return self.option.removesuffix("model") + what

    @property
    def key_option(self) -> str:
        """The option that names the variable of the key."""
        return self.option_for("api-key-env")


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """One evaluation: an agent on the rows of one data file, scored and held to a threshold."""

    name: str
    """The suite's name: the data file as given, or the node id of a test function."""
    agent: str
    data: Path
    model: ModelSpec
    eval_fns: tuple[str, ...] = ()
    """`module:function` each; empty means the rollout's own reward, named `reward`."""
    grader: str | None = None
    """`module:Grader`; None means the one in a workflow's module."""
    strip_reasoning: Literal[True] | None = None
    """Whether eval functions get answers without their reasoning."""
    n: int = 1
    pass_threshold: float = 1.0
    thresholds: tuple[str, ...] = ()
    """ "style=0.5" each: eval functions that have their own."""
    max_turns: int = 10
    limit: int | None = None
    offset: int = 0
    rows: str | None = None
    """ "3,7,10-20": the rows by their indices."""
    map: tuple[str, ...] = ()
    """ "question=user_prompt" each: which column serves as which."""
    prompt_template: str | None = None
    """The Jinja2 template of the user prompt, its text."""
    where: tuple[str, ...] = ()
    """ "lang=en" each: the rows that are taken."""
    quarantine: tuple[str, ...] = ()
    """The rows, by their ids, that are run and shown, and left out of figures and gates."""
    system_prompt: str | None = None
    """That of rows without one."""
    sample: str | None = None
    sample_seed: int = 0
    part: str | None = None
    """ "2/4" for the second of four; taken last."""
    agent_timeout_s: float = 450.0
    grader_timeout_s: float = 150.0
    scored_by_test: bool = False
    """What runs it scores its runs once they have ended, such as a test by its asserts."""
    label: str = ""
    """What names it in its runs' node ids, where several evaluations run the same rows."""
    leader: str | None = None
    """The first evaluation of the group that runs these rows; None of that one itself."""
    companion_of: str | None = None
    """The evaluation that this one accompanies: its own runs are observed, and decide nothing."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How runs are kept, and what is done with those of earlier sessions."""

    journal: bool = True
    run_dir: Path | None = None
    """Where evaluations are kept; None means `.osmosis/runs` in the project."""
    resume: bool = False
    """Resume, or refuse; never start over because something has changed."""
    extend: bool = False
    """Use the runs of an evaluation that has ended, also for more runs or rows."""
    fresh: bool = False
    """Start over in any case."""
    retry: Literal["errors", "all"] | None = None
    """Run again the errors, or all that did not pass."""

    @property
    def reuse_option(self) -> str | None:
        """The option that asks for the runs that are kept, if one was given."""
        options = {
            "--osmosis-resume": self.resume,
            "--osmosis-extend": self.extend,
            "--osmosis-retry-failed": self.retry is not None,
        }
        return next((option for option, given in options.items() if given), None)


@dataclass(frozen=True, slots=True)
class Deciding:
    """What decides, beyond each run for itself."""

    gates: tuple[str, ...] = ()
    """Conditions on the metrics, as text; with one, a run below the threshold fails nothing."""
    confidence: float | None = None
    """What the intervals have; given, it widens the bounds that gates are held at."""


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What holds for the whole session: throughput and outputs."""

    evals: tuple[EvalSpec, ...] = ()
    """The evaluations asked for by options; tests add theirs at collection."""
    defaults: EvalSpec | None = None
    """What tests fall back on."""
    batch_size: int = 1
    worker_timeout_s: float = 30.0
    """How long a worker process may be silent."""
    import_timeout_s: float = 60.0
    """How long the import of a module that is named may take; 0: as long as it takes."""
    deciding: Deciding = Deciding()
    keeping: Keeping = Keeping()
    reports: Mapping[str, Path] = field(default_factory=dict)
    """The files to write, by the names of their options."""
    trajectories: Path | None = None
    """The file of whole conversations."""
    answers: bool = True
    debug_dir: Path | None = None
    """The folder of this session, below the one that the option names."""
    roots: tuple[Path, ...] = ()
    """Where agents and eval functions are imported from, in order."""
    inputs: tuple[str, ...] = ()
    """Absolute patterns of the files that agents read."""
    config_env: Mapping[str, str] = field(default_factory=dict)
    """Digests of the variables of a config file's [env], by name."""
    pass_env: tuple[str, ...] = ()
    """Variables that command agents get although they hold a model's key."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """What the features read from the options that ask for them, by their names."""
    key_variables: tuple[Secret, ...] = ()
    """Environment variables that hold a model's key or a login, with their values."""

    def with_models(self, change: Callable[[ModelSpec], ModelSpec]) -> SessionSpec:
        """Return the session with its models changed: what was one model stays one."""
        changed: dict[int, ModelSpec] = {}

        def with_model(spec: EvalSpec) -> EvalSpec:
            if id(spec.model) not in changed:
                changed[id(spec.model)] = change(spec.model)
            return replace(spec, model=changed[id(spec.model)])

        return replace(
            self,
            evals=tuple(map(with_model, self.evals)),
            defaults=None if self.defaults is None else with_model(self.defaults),
        )

    @property
    def output(self) -> Path | None:
        """The JSON report."""
        return self.reports.get("output")

    @property
    def withheld(self) -> tuple[str, ...]:
        """The variables that command agents are started without."""
        return tuple(each.name for each in self.key_variables if each.name not in self.pass_env)
