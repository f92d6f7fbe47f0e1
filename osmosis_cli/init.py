"""`osmosis init`: the files of a first evaluation, which passes at once with the embedded model."""

from __future__ import annotations

from pathlib import Path

import click

from .errors import CommandError
from .shared_options import may_ask, print_json

TEMPLATES = {
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
"""


@click.command("init", epilog=EPILOG)
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the files as one JSON document.")
def init_command(folder: Path, yes: bool, as_json: bool) -> None:
    """Write a first evaluation into FOLDER: an agent, scoring, questions, settings, a workflow.

    `pytest` in that folder then passes, without a key. No file is overwritten.
    """
    if taken := [name for name in TEMPLATES if (folder / name).exists()]:
        raise CommandError(
            f"{', '.join(taken)}: there already; name an empty folder: osmosis init FOLDER",
            code="exists",
        )
    if not (yes or as_json):
        may_ask(yes=False, as_json=False)
        click.confirm(f"Write {', '.join(TEMPLATES)} into {folder}?", default=True, abort=True)
    for name, template in TEMPLATES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Path(__file__).with_name("templates").joinpath(template).read_bytes())
    if as_json:
        print_json({"folder": str(folder), "files": list(TEMPLATES)})
        return
    click.echo("\n".join(str(folder / name) for name in TEMPLATES))
    click.echo(f"\nNow: {'' if folder == Path('.') else f'cd {folder} && '}pytest")
