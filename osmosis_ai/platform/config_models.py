"""What a config file of an evaluation or of a training run may say, and what is sent of it.

    RunConfig           [experiment] [advanced] [env]
    ├── EvalConfig      [evaluation] [secrets], required
    └── TrainingConfig  [training] [sampling] [checkpoints] [secrets], optional

These models are the single definition: the checks and the JSON Schema read them.
Types are strict, and unknown keys are refused. A value that a file leaves out is not sent: its
default is the platform's. Knows no file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationInfo
from pydantic.functional_validators import AfterValidator, BeforeValidator, field_validator
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from .run_kinds import EVALUATION, TRAINING, RunKind

INT64_MAX = 2**63 - 1
ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
RESERVED_PREFIX = "_OSMOSIS_"
RESERVED_NAMES = frozenset(
    f"OSMOSIS_{name}"
    for name in ("ALLOWED_TRAINERS", "CONFIG_ENV", "SECRET_NAMES", "SERVER_API_KEY", "SHARD")
)
"""Variables that are set for a run beside its own."""
MAX_ENV_BYTES = 128 * 1024 - 1
"""Of `NAME=value` in UTF-8: Linux starts no program with a longer string."""
_SEGMENT = re.compile(r"[^/\\]+")
_BRANCH = re.compile(r"(?![-/])(?!.*(\.\.|//|@\{))[^\s~^:?*\[\\]+(?<![./])")
"""By what `git check-ref-format --branch` refuses, as far as it could name another ref."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be, in words for its writer; the error of one that is not says it."""

    text: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Put this in place of whatever pydantic finds wrong."""
        return core_schema.custom_error_schema(
            handler(source), custom_error_type=_RULE, custom_error_message=self.text
        )


_RULE = "rule"
_OF_TYPES = {
    "model_type": "a table",
    "dict_type": "a table",
    "list_type": "an array of strings",
}


def reserved(name: str) -> str | None:
    """Return why no run can set a variable of this name; None where it can."""
    if name.startswith(RESERVED_PREFIX):
        return f"names that start with {RESERVED_PREFIX} are the platform's"
    if name in RESERVED_NAMES:
        return "is a name that the platform sets itself; take another one"
    return None


def broken_rule(detail: ErrorDetails) -> str | None:
    """Return what a value must be that pydantic refuses; None where no rule says it."""
    return detail["msg"] if detail["type"] == _RULE else _OF_TYPES.get(detail["type"])


def _line_of_text(text: str) -> str:
    if not text or text != text.strip() or not text.isprintable():
        raise ValueError
    return text


def _text(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError
    return text


def _segment(text: str) -> str:
    if not _SEGMENT.fullmatch(_line_of_text(text)) or text in (".", ".."):
        raise ValueError
    return text


def _branch(text: str) -> str:
    if not text.isprintable() or not _BRANCH.fullmatch(text):
        raise ValueError
    return text


def _json_only(value: Any) -> Any:
    """Return a value that JSON can hold; raise ValueError for a date, a time, nan and inf."""
    if isinstance(value, Mapping):
        return {key: _json_only(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_only(item) for item in value]
    if not isinstance(value, str | int | float) or not (
        isinstance(value, str) or math.isfinite(value)
    ):
        raise ValueError
    return value


def _env_value(value: str) -> str:
    if "\0" in value or "\n" in value or "\r" in value:
        raise ValueError
    return value


Count = Annotated[int, Field(ge=1, le=INT64_MAX), Rule("an integer, 1 or more")]
MOST_AT_ONCE = 10_000
"""Of runs per row and of rollouts in flight: more than a run can mean, or a machine can hold."""
BoundedCount = Annotated[
    int,
    Field(ge=1, le=MOST_AT_ONCE),
    Rule(f"an integer, 1 or more and {MOST_AT_ONCE:,} at most"),
]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False), Rule("a number above 0")]
Finite = Annotated[float, Field(allow_inf_nan=False), Rule("a finite number")]
Temperature = Annotated[float, Field(ge=0, allow_inf_nan=False), Rule("a number, 0 or more")]
TopP = Annotated[
    float, Field(gt=0, le=1, allow_inf_nan=False), Rule("a number above 0, and 1 at most")
]
Line = Annotated[
    str, AfterValidator(_line_of_text), Rule("one line of text without spaces around it")
]
Lines = Annotated[list[Line], Field(min_length=1), Rule("an array of strings, with one at least")]
Text = Annotated[str, AfterValidator(_text), Rule("a text that is not blank")]
Segment = Annotated[str, AfterValidator(_segment), Rule("the name of a directory in rollouts/")]
Commit = Annotated[
    str,
    Field(pattern="^[0-9a-fA-F]{7,40}$"),
    Rule("7 to 40 hexadecimal digits of a commit"),
]
Branch = Annotated[
    str,
    Field(max_length=255),
    AfterValidator(_branch),
    Rule("the name of a branch, as git takes it"),
]
EnvValue = Annotated[
    str, AfterValidator(_env_value), Rule("a string without line breaks and NUL characters")
]
Json = Annotated[
    Any,
    BeforeValidator(_json_only),
    Rule("something that JSON can hold: no date, no time, no nan, no inf"),
]


class Section(BaseModel):
    """A table of a config file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    def given(self) -> dict[str, Any]:
        """Return what the file says, without what it leaves out."""
        return self.model_dump(exclude_unset=True)


def _optional(description: str, example: object) -> Any:
    """Return the field of a key that may be left out."""
    return Field(None, description=description, examples=[example])


class Experiment(Section):
    """What runs, on which rows, with which model."""

    rollout: Segment = Field(description="Rollout directory under rollouts/")
    entrypoint: Line = Field(description="Python file, relative to the rollout directory")
    model_path: Line = Field(description="The model")
    dataset: Line = Field(description="Platform dataset, from `osmosis dataset list`")
    branch: Branch | None = _optional("Run the newest commit of a branch", "my-branch")
    commit_sha: Commit | None = _optional(
        "Pin the code to a commit, in place of a branch", "0123abc"
    )

    @field_validator("commit_sha")
    @classmethod
    def _alone(cls, value: str | None, read: ValidationInfo) -> str | None:
        if value is not None and read.data.get("branch") is not None:
            raise PydanticCustomError(_RULE, "left out where branch says what runs")
        return value


class Evaluation(Section):
    """How an evaluation goes about it; what is left out is the platform's default."""

    limit: Count | None = _optional("First N rows; left out: a random tenth", 200)
    n: BoundedCount | None = _optional("Runs per row", 1)
    batch_size: BoundedCount | None = _optional("Rollouts in flight at once", 1)
    pass_threshold: Finite | None = _optional("A score that reaches it passes", 1.0)
    agent_workflow_timeout_s: Above0 | None = _optional("Agent timeout per run, seconds", 450)
    grader_timeout_s: Above0 | None = _optional("Grader timeout per run, seconds", 150)
    map: Lines | None = _optional("Which column serves as which", ["question=user_prompt"])
    where: Lines | None = _optional("Only rows with these values", ["lang=en"])
    prompt_template: Text | None = _optional(
        "Jinja2 template of the user prompt, or @ and its file", "{{ question }} {{ hint }}"
    )
    cluster: Line | None = _optional("The column by which rows belong together", "document")


class Training(Section):
    """How a training run goes about it; what is left out is the platform's default."""

    lr: Above0 | None = _optional("Learning rate", 1e-6)
    total_epochs: Count | None = _optional("Training epochs", 1)
    n_samples_per_prompt: Count | None = _optional("Rollouts per prompt", 8)
    rollout_batch_size: Count | None = _optional("Prompts per rollout batch", 32)
    max_prompt_length: Count | None = _optional("Tokens of a prompt at most", 8192)
    max_response_length: Count | None = _optional("Tokens of a response at most", 8192)
    agent_workflow_timeout_s: Above0 | None = _optional("Agent timeout per row, seconds", 450)
    grader_timeout_s: Above0 | None = _optional("Grader timeout per row, seconds", 150)


class Sampling(Section):
    """How the trained model samples."""

    rollout_temperature: Temperature | None = _optional("Sampling temperature", 1.0)
    rollout_top_p: TopP | None = _optional("Top-p sampling", 1.0)


class Checkpoints(Section):
    """How often is evaluated and saved."""

    eval_interval: Count | None = _optional("Evaluate every N rollout steps", 10)
    checkpoint_save_freq: Count | None = _optional("Save a checkpoint every N rollout steps", 20)


class Secrets(Section):
    """The names of the secrets that the platform resolves and gives to the rollout."""

    required: list[Annotated[str, Rule("the name of a secret, as [A-Z][A-Z0-9_]*")]] = Field(
        description="Names of secrets, registered with `osmosis secret set`",
        json_schema_extra={"uniqueItems": True},
    )


class RunConfig(Section):
    """What the config files of evaluations and training runs have in common."""

    run: ClassVar[RunKind]

    experiment: Experiment
    advanced: dict[str, Json] | None = Field(
        None, description="Fields of the backend, sent as they are"
    )
    env: dict[str, EnvValue] | None = Field(
        None, description="Environment variables of the rollout that are no secrets"
    )
    secrets: Secrets | None = None

    def payload(self) -> dict[str, Any]:
        """Return the body of the request that submits this config."""
        sections = {
            "secrets" if name == "secrets" else f"{name}_config": value
            for name, value in self.given().items()
        }
        return {name: value for name, value in sections.items() if value is not None}


class EvalConfig(RunConfig):
    """An evaluation: `configs/eval/*.toml`."""

    run = EVALUATION

    evaluation: Evaluation | None = None
    secrets: Secrets


class TrainingConfig(RunConfig):
    """A training run: `configs/training/*.toml`."""

    run = TRAINING

    training: Training | None = None
    sampling: Sampling | None = None
    checkpoints: Checkpoints | None = None


CONFIGS: Mapping[RunKind, type[RunConfig]] = {EVALUATION: EvalConfig, TRAINING: TrainingConfig}


def json_schema(config: type[RunConfig]) -> dict[str, Any]:
    """Return the JSON Schema of a kind of config file, for editors."""
    schema = config.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
