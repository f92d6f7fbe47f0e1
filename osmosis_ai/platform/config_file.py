"""Read a config file: every problem of it at once, with key, line, rule and the nearest name.

`read_config` checks what the file says. `load_config` checks its place and its entrypoint in the
workspace too. Nothing is sent, no value of [env] is shown.
"""

from __future__ import annotations

import re
import stat
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..escaping import printable
from . import workspace
from .config_models import (
    ENV_NAME,
    MAX_ENV_BYTES,
    SECRET_NAME,
    Rule,
    RunConfig,
    Section,
    broken_rule,
    reserved,
)
from .toml_source import MAX_BYTES, KeyPath, TomlError, TomlSource

C = TypeVar("C", bound=RunConfig)
RISKY_ENV = {"PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"}
"""Variables that change which code runs."""
_KEY_LIKE = re.compile(
    r"(sk|pk|rk)-[\w-]{8,}|gh[pousr]_\w{8,}|github_pat_\w+|xox[abprs]-[\w-]+|hf_\w{8,}|AKIA\w{12,}"
    r"|AIza[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]+\..*|[0-9a-fA-F]{40,}"
)
_MOVED = {
    "eval": "[experiment], and `limit` in [evaluation]",
    "llm": "`model_path` in [experiment], and the option --base-url",
    "runs": "[evaluation]",
    "timeouts": "[evaluation]",
    "grader": "the entrypoint imports its grader",
    "baseline": "the option --baseline-model",
    "output": "the options -o and --debug-dir",
    "rollout": "[env], and names in [secrets] required = [...]",
}
"""Tables of config files before osmosis-ai 0.3, and what stands for them today."""
_NAME_LIKE = re.compile(r"[A-Za-z0-9_]{1,40}")
_TOML_TYPES = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    dict: "a table",
    list: "an array",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file."""

    message: str
    key: str = ""
    """The path of the key, as `experiment.rollout`."""
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return place + (f"{self.key}: " if self.key else "") + self.message


class ConfigError(Exception):
    """A config file that cannot be used, with every problem that it has."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(str(self))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{printable(str(self.path))}: {self.problems[0]}"
        lines = [f"{printable(str(self.path))}: {len(self.problems)} problems"]
        return "\n".join([*lines, *(f"  {problem}" for problem in self.problems)])


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[C]):
    """A config file that can be used."""

    path: Path
    config: C
    source: TomlSource = field(repr=False)
    warnings: tuple[Problem, ...]


def load_config(kind: type[C], path: Path, *, start: Path | None = None) -> ConfigFile[C]:
    """Return the config of a file in the workspace around `start`, the current directory.

    Raise ConfigError with every problem of the file, its place and its entrypoint.
    """
    problems: list[Problem] = []
    root: Path | None = None
    try:
        root = workspace.find_root(start or Path.cwd())
        workspace.check_place(path, root, kind.run.folder)
    except workspace.WorkspaceError as error:
        problems.append(Problem(str(error)))
    try:
        file = read_config(kind, path)
    except ConfigError as error:
        raise ConfigError(path, [*problems, *error.problems]) from None
    if root is not None:
        experiment = file.config.experiment
        try:
            workspace.find_entrypoint(root, experiment.rollout, experiment.entrypoint)
        except workspace.EntrypointError as error:
            key = ("experiment", error.key)
            problems.append(Problem(str(error), ".".join(key), file.source.line_of(key)))
    if problems:
        raise ConfigError(path, problems)
    return file


def read_config(kind: type[C], path: Path) -> ConfigFile[C]:
    """Return the config of a file, wherever it is; raise ConfigError with every problem of it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise ConfigError(path, [Problem("cannot be read: it is no regular file")])
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        source = TomlSource.parse(raw)
    except OSError as error:
        raise ConfigError(path, [Problem(f"cannot be read: {error.strerror}")]) from None
    except TomlError as error:
        raise ConfigError(path, [Problem(error.message, line=error.line)]) from None
    config: C | None = None
    problems: list[Problem] = []
    try:
        config = kind.model_validate(source.data)
    except ValidationError as error:
        problems += _validation_problems(kind, error, source)
    problems += _name_problems(source)
    if config is None or problems:
        unique = dict.fromkeys(problems)
        raise ConfigError(path, sorted(unique, key=lambda problem: problem.line or 0))
    return ConfigFile(path, config, source, tuple(_warnings(config, source)))


# ---- what pydantic found


def _validation_problems(
    kind: type[RunConfig], error: ValidationError, source: TomlSource
) -> Iterator[Problem]:
    missing: dict[KeyPath, Problem] = {}
    meant: set[KeyPath] = set()
    for detail in error.errors(include_url=False, include_context=False):
        path = tuple(str(part) for part in detail["loc"])
        key, line = _shown_key(detail["loc"]), source.line_of(path)
        if detail["type"] == "missing":
            missing[path] = Problem(_missing(kind, path), key, line)
        elif detail["type"] == "extra_forbidden":
            hint, near = _unknown(kind, path)
            meant.add(near)
            yield Problem(hint, key, line)
        else:
            rule = f"must be {broken_rule(detail) or 'of another type'}"
            yield Problem(_wrong(rule, path, detail["input"]), key, line)
    for path, problem in missing.items():
        if path not in meant:  # an unknown key has been told what it is meant for
            yield problem


def _shown_key(parts: Sequence[str | int]) -> str:
    """A key as people read it: an element of an array by its number from 1."""
    names = [printable(part) for part in parts if isinstance(part, str)]
    entries = [f": entry {part + 1}" for part in parts if isinstance(part, int)]
    return "".join([".".join(names), *entries])


def _missing(kind: type[RunConfig], path: KeyPath) -> str:
    if path == ("secrets",):
        return (
            f"the table [secrets] is missing; an {kind.run.noun} names its secrets: write "
            "[secrets] and required = [...], which is empty where none is needed"
        )
    if path == ("secrets", "required"):
        return "missing; write the names of the secrets, or required = []"
    if len(path) == 1:
        return f"the table [{path[0]}] is missing"
    field = section_fields(kind, path[0])[path[1]]
    [rule] = (item.text for item in field.metadata if isinstance(item, Rule))
    return f"missing; must be {rule}"


def _unknown(kind: type[RunConfig], path: KeyPath) -> tuple[str, KeyPath]:
    """Return what to say of an unknown key, and the path of the key that is meant."""
    *tables, name = path
    if not tables and name in _MOVED:
        return f"a table of older config files; today: {_MOVED[name]}", path
    if tables == ["secrets"] and SECRET_NAME.fullmatch(name):
        return "names of secrets are listed in `required`, without values", ("secrets", "required")
    noun = "unknown key" if tables else "unknown key or table"
    known = section_fields(kind, path[0]) if tables else kind.model_fields
    elsewhere = [table for table in kind.model_fields if name in section_fields(kind, table)]
    if elsewhere:
        return f"{noun}; it belongs into [{elsewhere[0]}]", (elsewhere[0], name)
    from difflib import get_close_matches  # only for a mistake

    close = get_close_matches(name, known, n=1)
    if close:
        return f"{noun}; did you mean {close[0]!r}?", (*tables, close[0])
    return f"{noun}; known: {', '.join(known)}", path


def _wrong(rule: str, path: KeyPath, value: object) -> str:
    """Return what a value must be, and what it is; where it may be a key its type alone."""
    if len(path) > 1 and path[0] == "advanced":
        return rule  # the value may be a table that is wrong deep inside
    if path[0] == "env" and isinstance(value, str):
        return rule
    return f"{rule}, not {_described(value, hidden=path[0] in ('env', 'secrets'))}"


def _described(value: object, *, hidden: bool) -> str:
    kind = _TOML_TYPES.get(type(value), "a date or time")
    if hidden or isinstance(value, bool | dict | list):
        return kind
    if isinstance(value, str):
        return _quoted(value)
    text = repr(value) if isinstance(value, int | float) else kind
    return text if len(text) < 30 else f"an integer of {len(text)} digits"


def section_fields(kind: type[RunConfig], name: str) -> Mapping[str, FieldInfo]:
    """Return the keys of a table that has fixed ones, none for another."""
    annotation = kind.model_fields[name].annotation if name in kind.model_fields else None
    for part in (annotation, *typing.get_args(annotation)):  # of a union too
        if isinstance(part, type(Section)):
            return part.model_fields
    return {}


# ---- names of variables and secrets


def _name_problems(source: TomlSource) -> Iterator[Problem]:
    env = source.data.get("env")
    names = env if isinstance(env, dict) else {}
    for name, value in names.items():
        yield from _env_problems(name, value, source.line_of(("env", name)))
    secrets = source.data.get("secrets")
    required = secrets.get("required") if isinstance(secrets, dict) else None
    line = source.line_of(("secrets", "required"))
    seen: set[str] = set()
    for number, name in enumerate(required if isinstance(required, list) else (), start=1):
        if not isinstance(name, str):
            continue
        key = f"secrets.required: {_secret_name(name, number)}"
        if not SECRET_NAME.fullmatch(name):
            yield Problem(f"{key} is no name of a secret: [A-Z][A-Z0-9_]*", line=line)
        elif problem := reserved(name):
            yield Problem(f"{key} {problem}", line=line)
        elif name in seen:
            yield Problem(f"{key} is named twice", line=line)
        elif name in names:
            place = source.line_of(("env", name))
            also = "" if place is None else f" (line {place})"
            yield Problem(f"{key} is in [env]{also} too; keep it in one of them", line=line)
        seen.add(name)


def _secret_name(name: str, number: int) -> str:
    """Return how to call an entry of `required`, which may be a key in the wrong place."""
    is_harmless = _NAME_LIKE.fullmatch(name) and not _KEY_LIKE.fullmatch(name)
    return f"'{name}'" if is_harmless else f"entry {number}"


def _env_problems(name: str, value: object, line: int | None) -> Iterator[Problem]:
    key = f"env.{printable(name)}" if name else "env"
    if not ENV_NAME.fullmatch(name):
        yield Problem(f"{_quoted(name)} is no name of a variable: [A-Z_][A-Z0-9_]*", key, line)
    elif problem := reserved(name):
        yield Problem(problem, key, line)
    if isinstance(value, str) and len(f"{name}={value}".encode()) > MAX_ENV_BYTES:
        limit = f"{MAX_ENV_BYTES:,} bytes with their name"
        yield Problem(f"too long: a program is started with values of up to {limit}", key, line)


def _warnings(config: RunConfig, source: TomlSource) -> Iterator[Problem]:
    for name, value in (config.env or {}).items():
        line = source.line_of(("env", name))
        if name in RISKY_ENV:
            yield Problem(
                "changes which code the rollout runs; is that meant?", f"env.{name}", line
            )
        if _KEY_LIKE.fullmatch(value):
            message = "looks like a key, and is kept and sent as it is: use [secrets] instead"
            yield Problem(message, f"env.{name}", line)


def _quoted(text: str) -> str:
    return f"'{printable(text[:60])}'" + ("…" if len(text) > 60 else "")
