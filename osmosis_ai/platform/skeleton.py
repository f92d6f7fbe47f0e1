"""The files that a new workspace and a new rollout begin with. Never replaces a file.

The .gitignore of a workspace names what must not be committed: `.env`, which has keys, and
`.osmosis`, which has conversations. Git is asked whether it does what it is meant to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from ..escaping import printable
from .config_models import EvalConfig, RunConfig, TrainingConfig, json_schema
from .git_command import GitError, ask
from .run_kinds import EVALUATION, TRAINING
from .workspace import DATASETS, ROLLOUTS, NameRefused, WorkspaceError

ROLLOUT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PRIVATE = (".osmosis/", ".env")
"""Patterns; the names that they are about are the same without the slash."""
_IGNORED = (*_PRIVATE, "__pycache__/")


def create_workspace(root: Path) -> list[Path]:
    """Create what a workspace lacks; return the files that are new or were added to."""
    made: list[Path] = []
    for folder in (ROLLOUTS, DATASETS, EVALUATION.folder, TRAINING.folder):
        (root / folder).mkdir(parents=True, exist_ok=True)
        if not any((root / folder).iterdir()):
            made += _create(root / folder / ".gitkeep", "")  # Git keeps no empty directory
    for kind in (EvalConfig, TrainingConfig):
        made += _create(_schema_file(root, kind), json.dumps(json_schema(kind), indent=2) + "\n")
    return made + _ignore(root)


def create_rollout(
    root: Path,
    name: str,
    *,
    model: str,
    secrets: Sequence[str],
    limit: int | None,
) -> list[Path]:
    """Create a rollout with its two config files and a dataset; return the new files.

    `model`, the secrets that it needs and `limit` are for the config of evaluations.

    Raise WorkspaceError for a wrong name, or when a file is there already; nothing is written.
    """
    if not ROLLOUT_NAME.fullmatch(name):
        raise NameRefused(
            f"{name!r} cannot name a rollout: letters, digits, '.', '_' and '-', not first '.' "
            "or '-', 100 at most"
        )
    values = {
        "{name}": json.dumps(name),
        "{model}": json.dumps(model, ensure_ascii=False),
        "{limit}": "# limit = 200" if limit is None else f"limit = {limit}",
        "{secrets}": json.dumps([*secrets]),
    }
    contents = {
        f"{ROLLOUTS}/{name}/main.py": _template("main.py.txt"),
        f"{ROLLOUTS}/{name}/pyproject.toml": _template(
            "pyproject.toml.txt", {"{name}": name.lower()}
        ),
        f"{DATASETS}/{name}.jsonl": _template("dataset.jsonl"),
        f"{EVALUATION.folder}/{name}.toml": _template("eval.toml.txt", values),
        f"{TRAINING.folder}/{name}.toml": _template("training.toml.txt", values),
    }
    if there := [path for path in contents if (root / path).exists()]:
        raise WorkspaceError(f"choose another name; there already: {', '.join(there)}")
    made: list[Path] = []
    for path, text in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        made += _create(root / path, text)
    return made


def _schema_file(root: Path, kind: type[RunConfig]) -> Path:
    folder = Path(kind.run.folder)
    return root / folder.parent / f"{folder.name}.schema.json"


def _template(name: str, values: Mapping[str, str] | None = None) -> str:
    text = (files(__package__) / "templates" / name).read_text(encoding="utf-8")
    for place, value in (values or {}).items():
        text = text.replace(place, value)
    return text


def _create(path: Path, text: str) -> list[Path]:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return []
    return [path]


def _ignore(root: Path) -> list[Path]:
    """Add the patterns that a .gitignore lacks; return the file if it was changed."""
    path = root / ".gitignore"
    try:
        before = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        present = {line.strip().rstrip("/") for line in before.splitlines()}
        missing = [pattern for pattern in _IGNORED if pattern.rstrip("/") not in present]
        if not missing:
            return []
        gap = "" if not before or before.endswith("\n") else "\n"
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(gap + "".join(f"{pattern}\n" for pattern in missing))
    except OSError as error:
        raise WorkspaceError(
            f"{printable(str(path))} cannot be changed: {error.strerror}"
        ) from None
    return [path]


def exposures(root: Path) -> Iterator[str]:
    """Yield what Git would commit in spite of .gitignore, in sentences; nothing if git cannot tell.

    A link in place of the file is not followed by git, and a later pattern may undo an earlier one.
    """
    names = [pattern.rstrip("/") for pattern in _PRIVATE]
    try:
        inside = [f"{name}/x" if f"{name}/" in _PRIVATE else name for name in names]
        told = ask(root, "check-ignore", "--no-index", "--", *inside)
        tracked = ask(root, "ls-files", "--", *names)
    except GitError:
        return
    if told.status > 1 or tracked.status:  # no repository
        return
    kept_out = set(told.out.split())
    for name, path in zip(names, inside, strict=True):
        if path not in kept_out:
            yield (
                f"Git does not ignore {name}, although .gitignore names it: a later pattern undoes "
                "it, or the file is a link"
            )
    found = tracked.out.splitlines()
    for name in names:
        if any(path == name or path.startswith(f"{name}/") for path in found):
            yield f"{name} is committed already: `git rm -r --cached {name}` takes it out"
