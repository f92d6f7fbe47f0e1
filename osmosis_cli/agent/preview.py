"""`osmosis preview`: a rubric file or a dataset, as it is read.

Tells the kinds of file apart by name and first row, and shows what the reading commands would see.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.dataset.columns import mapping_of
from pytest_osmosis.dataset.dataset import Dataset, load_dataset, shape_at
from pytest_osmosis.dataset.decoding import decode
from pytest_osmosis.dataset.errors import DatasetError, Problems, RecordError, UnclearDataset
from pytest_osmosis.dataset.formats import RECORD_SUFFIXES_SHOWN, SUFFIXES_SHOWN
from pytest_osmosis.dataset.opening import open_dataset
from pytest_osmosis.dataset.rows import Row
from pytest_osmosis.dataset.shapes.shape import Shape, with_judge
from pytest_osmosis.features.hub.files import as_typed, local_file
from pytest_osmosis.options.values import condition, template_of

from ..errors import CommandError, command_errors
from ..eval.lines import say
from ..shared_options import print_json

TEXT_WIDTH = 200
YAML_SUFFIXES = (".yaml", ".yml")
EPILOG = """\b
Examples:
  osmosis preview rubric_configs.yaml
  osmosis preview test_data.jsonl --limit 5
"""


@click.command("preview", epilog=EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "-d",
    "--data",
    "-p",
    "--path",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"A rubric file (.yaml), records to judge ({RECORD_SUFFIXES_SHOWN}) "
    f"or a dataset ({SUFFIXES_SHOWN}).",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Show only the first N (default: all, of a dataset one); all are checked and counted.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="COLUMN=NAME",
    help="Which column of a dataset serves as which, such as question=user_prompt; repeatable.",
)
@click.option(
    "--prompt-template",
    "template",
    metavar="TEXT|@FILE",
    help="A Jinja2 template of the user prompt, as osmosis eval takes it.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only rows with this value, as osmosis eval takes it; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the file as one JSON document.")
def preview_command(
    file: Path | None,
    path: Path | None,
    limit: int | None,
    mapping: tuple[str, ...],
    template: str | None,
    where: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check a rubric file or a dataset, and show what is in it.

    Of a dataset also what its columns probably are, the scorer that fits its truths, the command
    that evaluates it, and its first row as an agent gets it then.
    """
    if file and path:
        raise click.UsageError(f"{file} and -d/--data {path} both name a file: give one of them")
    path = file or path
    if path is None:
        raise click.UsageError("which file? osmosis preview FILE")
    with command_errors(ValueError, code="usage", status=2, where="--map: "):
        named = mapping_of(mapping)
    if template is not None:
        with command_errors(ValueError, code="usage", status=2, where="--prompt-template: "):
            template = template_of(template, Path)
    with command_errors(ValueError, code="usage", status=2, where="--where: "):
        where = tuple(map(condition, where))
    given = {"mapping": named, "template": template, "where": where}
    rows = limit if limit or as_json else 1
    kind, total, entries, shape = _read(path, limit, rows, given)
    if as_json:
        about = {"path": str(path), "kind": kind, "total": total, kind: entries}
        print_json(about if shape is None else {**about, "proposed": _proposed(shape)})
        return
    noun = kind if total != 1 else kind.removesuffix("s")
    say(f"Loaded {total} {noun} from {as_typed(path)}")
    if shape is not None and shape.has_prompt:
        for line in _proposal(shape, path):
            say(line)
    for number, entry in enumerate(entries, 0 if kind == "rows" else 1):
        say(f"\n{kind.removesuffix('s')} {entry.get('row_index', number)}")
        for line in _lines(entry, "  "):
            say(line)
    if len(entries) < total:
        say(f"\nand {total - len(entries)} more")


def _read(
    path: Path, limit: int | None, rows: int | None, given: Mapping[str, Any]
) -> tuple[str, int, list[dict[str, Any]], Shape | None]:
    """Return what the file holds, how many of it, the first of them, and its shape.

    `limit`: how many of these; `rows`: of the rows of a dataset.
    """
    from ..rubric.config import RubricFileError, load_rubrics
    from ..rubric.records import load_records

    found: list[Any]
    if path.suffix.lower() in YAML_SUFFIXES:
        with command_errors(RubricFileError, code="invalid"):
            found = load_rubrics(path)
        return "rubrics", len(found), [rubric.mask() for rubric in found[:limit]], None
    try:
        path = local_file(path)
        if _holds_records(path):
            found = load_records(path)
            return "records", len(found), [record.mask() for record in found[:limit]], None
        dataset, shape = _dataset(path, given)
    except DatasetError as error:
        told = str(error).replace(SUFFIXES_SHOWN, f"{YAML_SUFFIXES[0]}, {SUFFIXES_SHOWN}")
        raise CommandError(told, code="invalid") from None
    found = [*map(_row, map(dataset.row, dataset.row_indices[:rows]))]
    return "rows", len(dataset), found, shape


def _dataset(path: Path, given: Mapping[str, Any]) -> tuple[Dataset, Shape]:
    """Return the rows as an agent gets them, by what is proposed where the file needs that."""
    if any(given.values()):
        dataset = load_dataset(path, **given)
        maps = tuple(f"{column}={role}" for role, column in given["mapping"].items())
        said = {"template": given["template"], "where": given["where"], "either": ()}
        return dataset, replace(dataset.shape, maps=maps, **said)
    shape = shape_at(path)
    try:
        return load_dataset(path), shape
    except UnclearDataset:
        if not shape.has_prompt:
            raise
    named = mapping_of((*shape.maps, *shape.either[:1]))
    return load_dataset(path, mapping=named, template=shape.template, where=shape.where), shape


def _proposal(shape: Shape, path: Path) -> Iterator[str]:
    """Yield what the columns are, the scorer that fits, and the command that evaluates."""
    yield ""
    yield from (f"  {line}" for line in (*shape.table(), *shape.remarks))
    if shape.scorer is not None:
        yield f"\nscored by {shape.scorer}: {shape.why}"
    words = ["osmosis", "eval", "-d", as_typed(path), "--model", "NAME"]
    for name, value in _flags(shape):
        words += [f"--{name}", value]
    yield f"evaluate it: {shlex.join(words)}"
    for other in shape.either[1:]:
        yield f"or, if that is the truth, with --map {shlex.quote(other)}"


def _flags(shape: Shape) -> list[tuple[str, str]]:
    return [(name, with_judge(value, {})) for name, value in shape.flags()]


def _proposed(shape: Shape) -> dict[str, Any]:
    """Return what is proposed, for programs."""
    names = ("name", "role", "sample")
    return {
        "columns": [dict(zip(names, each, strict=True)) for each in shape.columns],
        "options": [{"option": f"--{name}", "value": value} for name, value in _flags(shape)],
        "why": shape.why,
        "remarks": list(shape.remarks),
    }


def _row(row: Row) -> dict[str, Any]:
    """Return a row with its task under the name of its column."""
    shown = asdict(row)
    if row.task is not None:
        shown["extra"].pop("metadata", None)
        shown["metadata"] = shown["task"]
    del shown["task"], shown["own_truth"]
    return shown


def _holds_records(path: Path) -> bool:
    """Return whether the first row of JSON has a `solution_str`; False where it cannot be read."""
    file, kind = open_dataset(path)
    with file:
        if not kind.holds_records:
            return False
        with closing(kind.open(file, path)) as source:
            try:
                rows = source.scan(None, 0, 1, Problems(path, source.unit))
                return any("solution_str" in decode(raw) for _, _, raw in rows)
            except (DatasetError, RecordError):
                return False  # reading the whole file says what is wrong


def _lines(value: Any, indent: str) -> Iterator[str]:
    for key, item in value.items():
        if item in (None, {}, ""):
            continue
        name = f"{indent}{key}:"
        if isinstance(item, dict):
            yield name
            yield from _lines(item, indent + "  ")
        else:
            yield f"{name} {_text(item)}"


def _text(item: Any) -> str:
    text = item if isinstance(item, str) else json.dumps(item, default=str, ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= TEXT_WIDTH else f"{flat[:TEXT_WIDTH]}... ({len(text)} characters)"
