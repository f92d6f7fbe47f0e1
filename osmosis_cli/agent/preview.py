"""`osmosis preview`: a rubric file or a dataset, as it is read.

Tells the kinds of file apart by name and first row, and shows what the reading commands would see;
other JSON objects as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pytest_osmosis.dataset.columns import MESSAGES, PROMPTS, mapping_of
from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.decoding import decode
from pytest_osmosis.dataset.errors import DatasetError, Problems, RecordError
from pytest_osmosis.dataset.formats import RECORD_SUFFIXES_SHOWN, SUFFIXES_SHOWN
from pytest_osmosis.dataset.opening import open_dataset

from ..errors import CommandError, command_errors
from ..eval.lines import say
from ..masking import mask_secrets

TEXT_WIDTH = 200
YAML_SUFFIXES = (".yaml", ".yml")
_OF_ROWS = frozenset({*PROMPTS, MESSAGES})
_PLAIN_OBJECTS = (
    "neither records to judge (no 'solution_str') nor a dataset (no 'user_prompt'; "
    "--map COLUMN=user_prompt names the column that serves as it)"
)

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
    help="Show only the first N; all are checked and counted.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="COLUMN=NAME",
    help="Which column of a dataset serves as which, such as question=user_prompt; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the file as one JSON document.")
def preview_command(
    file: Path | None,
    path: Path | None,
    limit: int | None,
    mapping: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check a rubric file or a dataset, and show what is in it."""
    if file and path:
        raise click.UsageError(f"{file} and -d/--data {path} both name a file: give one of them")
    path = file or path
    if path is None:
        raise click.UsageError("which file? osmosis preview FILE")
    kind, total, entries = _read(path, limit, mapping)
    if as_json:
        click.echo(json.dumps({"path": str(path), "kind": kind, "total": total, kind: entries}))
        return
    noun = kind if total != 1 else kind.removesuffix("s")
    say(f"Loaded {total} {noun} from {path}")
    if kind == "objects":
        say(_PLAIN_OBJECTS)
    for number, entry in enumerate(entries, 0 if kind == "rows" else 1):
        say(f"\n{kind.removesuffix('s')} {number}")
        for line in _lines(entry, "  "):
            say(line)
    if len(entries) < total:
        say(f"\nand {total - len(entries)} more")


def _read(
    path: Path, limit: int | None, mapping: tuple[str, ...]
) -> tuple[str, int, list[dict[str, Any]]]:
    """Return what the file holds, how many of it, and the first `limit` of them."""
    if path.suffix.lower() in YAML_SUFFIXES:
        return _rubrics(path, limit)
    try:
        columns = _columns(path)
        if "solution_str" in columns:
            return _records(path, limit)
        if columns and not mapping and _OF_ROWS.isdisjoint(key.strip().lower() for key in columns):
            return _objects(path, limit)
        return _rows(path, limit, mapping)
    except DatasetError as error:
        told = str(error).replace(SUFFIXES_SHOWN, f"{YAML_SUFFIXES[0]}, {SUFFIXES_SHOWN}")
        raise CommandError(told, code="invalid") from None


def _rubrics(path: Path, limit: int | None) -> tuple[str, int, list[dict[str, Any]]]:
    from ..rubric.config import RubricFileError, load_rubrics

    with command_errors(RubricFileError, code="invalid"):
        found = load_rubrics(path, is_for_judging=False)
    return "rubrics", len(found), [rubric.mask() for rubric in found[:limit]]


def _records(path: Path, limit: int | None) -> tuple[str, int, list[dict[str, Any]]]:
    from ..rubric.records import load_records

    found = load_records(path)
    return "records", len(found), [record.mask() for record in found[:limit]]


def _rows(
    path: Path, limit: int | None, mapping: tuple[str, ...]
) -> tuple[str, int, list[dict[str, Any]]]:
    with command_errors(ValueError, code="usage", status=2, where="--map: "):
        named = mapping_of(mapping)
    dataset = load_dataset(path, mapping=named)
    shown = dataset.row_indices[:limit]
    return "rows", len(dataset), [asdict(dataset.row(row_index)) for row_index in shown]


def _objects(path: Path, limit: int | None) -> tuple[str, int, list[dict[str, Any]]]:
    found = [mask_secrets(each) for each in _decoded(path, None)]
    return "objects", len(found), found[:limit]


def _columns(path: Path) -> frozenset[str]:
    """Return the columns of the first row of JSON; none where it is not an object."""
    try:
        return frozenset(key for each in _decoded(path, 1) for key in each)
    except DatasetError:
        return frozenset()  # reading the whole file says what is wrong


def _decoded(path: Path, limit: int | None) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON; none of another format."""
    file, kind = open_dataset(path)
    with file:
        if not kind.holds_records:
            return []
        found = []
        with closing(kind.open(file, path)) as source:
            problems = Problems(path, source.unit)
            for place, _, raw in source.scan(None, 0, limit, problems):
                try:
                    found.append(decode(raw))
                except RecordError as error:
                    problems.add(place, str(error))
        if wrong := problems.error():
            raise wrong
        return found


def _lines(value: Any, indent: str) -> Iterator[str]:
    for key, item in value.items():
        if item is None or item == {}:
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
