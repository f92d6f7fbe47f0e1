"""The files that a new workspace and a new rollout begin with. Never replaces a file."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from .config_models import EvalConfig, RunConfig, TrainingConfig, json_schema
from .config_template import config_template
from .ignored import ignore
from .workspace import DATASETS, ROLLOUTS, NameRefused, WorkspaceError

ROLLOUT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MODELS: dict[type[RunConfig], str] = {
    EvalConfig: "openai/gpt-5-mini",
    TrainingConfig: "Qwen/Qwen3.6-35B-A3B",
}
_SECRETS = ("OPENAI_API_KEY",)


def create_workspace(root: Path) -> list[Path]:
    """Create what a workspace lacks; return the files that are new or were added to."""
    made: list[Path] = []
    for folder in (ROLLOUTS, DATASETS, EvalConfig.folder, TrainingConfig.folder):
        (root / folder).mkdir(parents=True, exist_ok=True)
        if not any((root / folder).iterdir()):
            made += _create(root / folder / ".gitkeep", "")  # Git keeps no empty directory
    for kind in (EvalConfig, TrainingConfig):
        made += _create(_schema_file(root, kind), json.dumps(json_schema(kind), indent=2) + "\n")
    return made + ignore(root)


def create_rollout(root: Path, name: str) -> list[Path]:
    """Create a rollout with its two config files and a dataset; return the new files.

    Raises:
        WorkspaceError: when the name cannot be one, or a file is there already; nothing is written.
    """
    if not ROLLOUT_NAME.fullmatch(name):
        raise NameRefused(
            f"{name!r} cannot name a rollout: letters, digits, '.', '_' and '-', not first '.' "
            "or '-', 100 at most"
        )
    contents = {
        f"{ROLLOUTS}/{name}/main.py": _template("main.py.txt"),
        f"{ROLLOUTS}/{name}/pyproject.toml": _template("pyproject.toml.txt").replace(
            "{name}", name.lower()
        ),
        f"{DATASETS}/{name}.jsonl": _template("dataset.jsonl"),
        **{f"{kind.folder}/{name}.toml": _config(kind, name) for kind in _MODELS},
    }
    if there := [path for path in contents if (root / path).exists()]:
        raise WorkspaceError(f"choose another name; there already: {', '.join(there)}")
    made: list[Path] = []
    for path, text in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        made += _create(root / path, text)
    return made


def _config(kind: type[RunConfig], name: str) -> str:
    experiment = {
        "rollout": name,
        "entrypoint": "main.py",
        "model_path": _MODELS[kind],
        "dataset": name,
    }
    schema = "../" + _schema_file(Path(), kind).name
    return config_template(kind, experiment, secrets=_SECRETS, schema=schema)


def _schema_file(root: Path, kind: type[RunConfig]) -> Path:
    folder = Path(kind.folder)
    return root / folder.parent / f"{folder.name}.schema.json"


def _template(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _create(path: Path, text: str) -> list[Path]:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return []
    return [path]
