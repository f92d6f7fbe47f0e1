"""`osmosis eval download`: results of an evaluation on the platform, laid out as those here.

They are made here of the run's JSON report and its conversations.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from osmosis_ai.platform.run_kinds import EVALUATION

from ..errors import CommandError, usage_errors
from ..eval.lines import say, tell
from ..shared_options import json_option, print_json
from .run_commands import run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs

EPILOG = """\b
Examples:
  osmosis eval download calm-otter-17
  osmosis eval download calm-otter-17 --type trajectories --rows 3,7,10-20
  osmosis eval download calm-otter-17 -o results.json --conversations
  osmosis eval report results.json
"""
EVALS = ".osmosis/evals"
TYPES: Mapping[str, Sequence[str]] = {
    "metrics": ("metrics.json", "index.jsonl", "summary.jsonl"),
    "trajectories": ("trajectories",),
    "logs": ("logs.txt",),
    "report": ("report.json", "report.trajectories.jsonl"),
}
_DEFAULT = "metrics,trajectories"
_SAID = {"trajectories", "logs", "report"}
"""Types that need conversations."""
_JSON = ".json"
_BLOCK = 1024 * 1024
_ODD = re.compile(r"[^\w.-]+", re.ASCII)


def _types(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    named = [each.strip() for each in value.split(",")]
    if unknown := [each for each in named if each not in (*TYPES, "all")]:
        text = f"{unknown[0]!r} is none of {', '.join((*TYPES, 'all'))}"
        if unknown[0] == "artifacts":
            text = "'artifacts' is not there: files that a rollout writes stay where it ran"
        raise click.BadParameter(text, ctx, parameter)
    return [*TYPES] if "all" in named else named


@click.command("download", epilog=EPILOG)
@run_argument
@click.option(
    "--type",
    "types",
    metavar="TYPES",
    callback=_types,
    help=f"Which results, between commas: {', '.join(TYPES)} or all (default: {_DEFAULT}).",
)
@click.option("--rows", metavar="ROWS", help="Conversations of these rows alone: 3,7,10-20.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE.json",
    help=f"The folder of the results (default: {EVALS}/NAME); or a file for the report alone.",
)
@click.option("--overwrite", is_flag=True, help="Replace results that are there.")
@click.option(
    "--conversations",
    "with_conversations",
    is_flag=True,
    help="Beside -o FILE.json: the conversations too, in FILE.trajectories.jsonl.",
)
@json_option
def eval_download_command(
    name: str,
    types: list[str] | None,
    rows: str | None,
    output: Path | None,
    overwrite: bool,
    with_conversations: bool,
    as_json: bool,
) -> None:
    """Download results of an evaluation on the platform.

    They are laid out as `osmosis eval run` does: metrics.json, index.jsonl, summary.jsonl,
    logs.txt, trajectories/, report.json. The report is the one that `osmosis eval report`,
    `compare` and `merge` take. A platform keeps conversations for some time after the end of an
    evaluation.
    """
    if output is not None and output.suffix == _JSON:
        for option, given in {"--type": types, "--rows": rows, "--overwrite": overwrite}.items():
            if given:
                raise click.UsageError(f"{option} is for a folder of results, and {output} a file")
        sizes = _download_file(name, output, with_conversations=with_conversations)
    else:
        if with_conversations:
            text = "--conversations is for -o FILE.json; here it is --type report"
            raise click.UsageError(text)
        folder = output or Path(EVALS, _ODD.sub("-", name).lstrip("-.") or "run")
        sizes = _download_folder(name, folder, types, rows, overwrite=overwrite)
    if as_json:
        first, *more = [{"path": str(path), "bytes": size} for path, size in sizes.items()]
        key = "conversations" if with_conversations else "files"
        found = more[0] if more and with_conversations else more
        print_json({**first, **({key: found} if more else {})})
        return
    for target, size in sizes.items():
        shows = target.suffix == _JSON and target.name not in TYPES["metrics"]
        then = f"; show it: osmosis eval report {target}" if shows else ""
        say(f"{target}: {size:,} bytes{then}")


def _download_file(name: str, path: Path, *, with_conversations: bool) -> dict[Path, int]:
    """Write the report, and the conversations beside it; return the sizes."""
    from pytest_osmosis.reports.saved_conversations import beside

    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as said:
        with runs_of(EVALUATION) as runs:
            sizes = {path: runs.report(name, file)}
            if with_conversations:
                sizes[beside(path)] = runs.conversations(name, said)
        _check(file)
        for source, target in zip((file, said), sizes, strict=False):
            _keep(source, target)
    return sizes


def _download_folder(
    name: str, folder: Path, types: list[str] | None, rows: str | None, *, overwrite: bool
) -> dict[Path, int]:
    """Write the files of these types into a folder; return their sizes."""
    from pytest_osmosis.dataset.sampling import parse_rows

    wanted = types or _DEFAULT.split(",")
    if rows and not _SAID.intersection(wanted):
        raise click.UsageError("--rows is for conversations, and --type names none")
    with usage_errors(ValueError, where="--rows: "):
        named = None if rows is None else {*parse_rows(rows)}
    files = [file for each in TYPES if each in wanted for file in TYPES[each]]
    there = [folder / file for file in files if (folder / file).exists()]
    if there and not overwrite:
        raise click.UsageError(f"{there[0]} is there already: --overwrite replaces it")
    with tempfile.TemporaryDirectory(prefix="osmosis-download-") as temporary:
        made = Path(temporary).resolve()
        with runs_of(EVALUATION) as runs:
            _fetch(runs, name, made, wanted, is_required=types is not None)
        _lay_out(made, name, named, with_trajectories="trajectories" in wanted)
        if "metrics" in wanted:  # of the baseline model
            files += [each.parent.name for each in made.glob("*/metrics.json")]
        try:
            return _move(made, folder, files)
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror or error}", code="output") from None


def _fetch(runs: Runs, name: str, made: Path, types: Sequence[str], *, is_required: bool) -> None:
    """Fetch report and conversations; without these only what needs none is downloaded."""
    from osmosis_ai.platform.client import PlatformError

    report, said = (made / file for file in TYPES["report"])
    with report.open("w+b") as file:
        runs.report(name, file)
        _check(file)
    if not _SAID.intersection(types):
        return
    try:
        with said.open("w+b") as file:
            runs.conversations(name, file)
    except PlatformError as error:
        if error.status != 404 or is_required:
            raise
        said.unlink()
        tell(f"{error}; trajectories are left out")


def _lay_out(made: Path, name: str, rows: set[int] | None, *, with_trajectories: bool) -> None:
    """Write the results beside the report that they are made of."""
    from pytest_osmosis.features.workspace_results.report import write
    from pytest_osmosis.reports.saved_report import read_saved
    from pytest_osmosis.run_result import RolloutRecord, RunId

    from ..eval.report import readable

    with readable():
        saved = read_saved(made / TYPES["report"][0])
    if rows is not None:
        known = {row.row_index for suite in saved.result.suites for row in suite.rows}
        if missing := rows - known:
            raise click.UsageError(f"--rows {min(missing)}: the evaluation has no such row")

    def conversation(run: RunId) -> RolloutRecord | None:
        return saved.conversations(run) if rows is None or run.row_index in rows else None

    def section(run: RunId) -> str | None:
        text = saved.sections(run)
        return text and text.replace(f"{made}{os.sep}", "")  # where it is for a moment only

    said = conversation if with_trajectories else None
    write(saved.result, made / TYPES["metrics"][0], section, conversations=said, name=name)


def _move(made: Path, folder: Path, files: Sequence[str]) -> dict[Path, int]:
    """Put files where they belong, each whole; return their sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes: dict[Path, int] = {}
    for file in files:
        source, target = made / file, folder / file
        if not source.exists():
            continue
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        parts = [each for each in source.rglob("*") if each.is_file()] if source.is_dir() else []
        sizes[target] = sum(each.stat().st_size for each in parts or [source])
        shutil.move(source, target)
    return sizes


def _check(file: IO[bytes]) -> None:
    """Raise CommandError where a file is no report."""
    from pytest_osmosis.reports.json_reader import checked, result_of

    file.seek(0)
    try:
        result_of(checked(json.load(file)))
    except (ValueError, RecursionError):
        raise CommandError(
            "what the platform sent is no report of an evaluation; nothing was written",
            code="bad_answer",
        ) from None


def _keep(file: IO[bytes], path: Path) -> None:
    from pytest_osmosis.storage.atomic_write import write_whole

    file.seek(0)
    try:
        write_whole(path, iter(lambda: file.read(_BLOCK), b""))
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}", code="output") from None
