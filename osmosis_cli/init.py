"""`osmosis init`: the files of a first evaluation, which passes at once with the embedded model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .dataset_project import README, SETTINGS, Asked, files_for, gates_of, write, write_gates
from .errors import CommandError
from .shared_options import may_ask, print_json

TEMPLATES = {
    README: "README.md",
    "agent.py": "agent.py.txt",
    "scoring.py": "scoring.py.txt",
    "questions.jsonl": "questions.jsonl",
    "pyproject.toml": "pyproject.toml.txt",
    ".github/workflows/evaluate.yml": "evaluate.yml",
}
"""Of the files in `templates/`, by the names that they get."""
EPILOG = """\b
Examples:
  osmosis init
  osmosis init my-evaluation --yes && cd my-evaluation && pytest
  osmosis init --data questions.csv --model openai/gpt-5-mini
  osmosis init --gate first.json
"""
USUAL_MODEL = "openai/gpt-5-mini"


@click.command("init", epilog=EPILOG)
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "-d",
    "--data",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the evaluation of this dataset: the options and the scorer that fit its rows.",
)
@click.option("--model", metavar="NAME", help=f"With --data: the model (default: {USUAL_MODEL}).")
@click.option("--base-url", metavar="URL", help="With --data: where the model is asked.")
@click.option(
    "--eval-fn",
    "eval_fns",
    multiple=True,
    metavar="NAME",
    help="With --data: what scores, in place of the scorer that fits; repeatable.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="COLUMN=NAME",
    help="With --data: which column serves as which, where that cannot be seen; repeatable.",
)
@click.option(
    "--gate",
    metavar="REPORT",
    type=click.Path(path_type=Path),
    help="Put a gate into the project in FOLDER: what the session of this JSON report reached, "
    "less its interval.",
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the files as one JSON document.")
def init_command(
    folder: Path,
    data: Path | None,
    gate: Path | None,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Write a first evaluation into FOLDER: an agent, scoring, questions, settings, a workflow.

    `pytest` in that folder then passes, without a key. With --data it is the evaluation of that
    file. README.md says what each file is. No file is overwritten.
    """
    if data is None and any(given.values()):
        name = next(name for name, value in given.items() if value)
        raise click.UsageError(f"--{name.rstrip('s').replace('_', '-')} needs --data too")
    if gate is not None:
        if data is not None:
            raise click.UsageError("--data and --gate: the gate is of a session that has run")
        _write_gates(folder, gate, as_json=as_json)
        return
    files = _example() if data is None else _of_dataset(data, folder, given)
    if (folder / README).exists():
        del files[README]
    if taken := [name for name in files if (folder / name).exists()]:
        raise CommandError(
            f"{', '.join(taken)}: there already; name an empty folder: osmosis init FOLDER",
            code="exists",
        )
    if not (yes or as_json):
        may_ask(yes=False, as_json=False)
        click.confirm(f"Write {', '.join(files)} into {folder}?", default=True, abort=True)
    write(folder, files)
    if as_json:
        print_json({"folder": str(folder), "files": list(files)})
        return
    click.echo("\n".join(str(folder / name) for name in files))
    steps = [] if folder == Path(".") else [f"cd {folder}"]
    if data is None:
        click.echo(f"\nNow: {' && '.join([*steps, 'pytest'])}")
        return
    click.echo(f"\n{files[SETTINGS]}")
    steps.append("pytest --osmosis-sample=50 --osmosis-output=first.json")
    click.echo(f"Now: {' && '.join(steps)}\nThen: osmosis init --gate first.json")


def _example() -> dict[str, str | Path]:
    templates = Path(__file__).with_name("templates")
    return {name: templates / template for name, template in TEMPLATES.items()}


def _of_dataset(data: Path, folder: Path, given: Mapping[str, Any]) -> dict[str, str | Path]:
    model = given["model"] or USUAL_MODEL
    maps, eval_fns = given["maps"], given["eval_fns"]
    asked = Asked(data, model, base_url=given["base_url"], eval_fns=eval_fns, maps=maps)
    return files_for(asked, folder)


def _write_gates(folder: Path, report: Path, *, as_json: bool) -> None:
    gates = gates_of(report)
    path = write_gates(folder, [gate for gate, _ in gates])
    if as_json:
        print_json({"file": str(path), "gates": [gate for gate, _ in gates]})
        return
    for gate, reached in gates:
        click.echo(f"{gate}    {reached}")
    click.echo(f"in {path}")
