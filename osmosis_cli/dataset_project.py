"""The files of an evaluation of one dataset: settings, agent, workflow, README; then its gates.

What the file is, is read off its rows; nothing is sent anywhere. The gates come from the report of
a session: what it reached, less its interval.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from osmosis_ai.providers import key_variables, parse_model_name
from pytest_osmosis.dataset.columns import mapping_of
from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.decoding import decode
from pytest_osmosis.dataset.errors import DatasetError, Problems
from pytest_osmosis.dataset.opening import open_dataset
from pytest_osmosis.dataset.shapes.search import SAMPLED, shape_of
from pytest_osmosis.dataset.shapes.shape import Shape, with_judge
from pytest_osmosis.features.hub import SCHEME
from pytest_osmosis.features.hub.files import as_typed, local_file
from pytest_osmosis.features.table import OPTIONS
from pytest_osmosis.reports.json_reader import UnreadableReport, load_report

from .errors import CommandError

README = "README.md"
"""Written where the folder has none."""
SETTINGS = "pyproject.toml"
NO_GATES = "# osmosis_gates: `osmosis init --gate REPORT` writes them here"
"""The line of the settings that the gates take the place of."""
_TEMPLATES = Path(__file__).with_name("templates") / "dataset"
_REQUIREMENTS = "requirements.txt"
_WORKFLOW = ".github/workflows/evaluate.yml"
_AGAINST_MAIN = '--osmosis-gate "mean - baseline >= -0.02"'
"""In the workflow: gates of the command line take the place of those in the settings."""
_DIGITS = 100
"""Gates have two decimals."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says of the evaluation."""

    data: Path
    model: str
    base_url: str | None = None
    eval_fns: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()


def files_for(asked: Asked, folder: Path) -> dict[str, str | Path]:
    """Return the content of each file of the project, by its name; a path is copied.

    Raises:
        CommandError: when the dataset cannot be used, or nothing is known that scores it.
    """
    shape = _shape(asked)
    options = _options(asked, shape)
    name, copied = _place(asked.data, folder)
    key = _key(asked)
    scorers = [value for option, value in options if option == "eval-fn"]
    known = {
        "DATA": name,
        "MODEL": asked.model,
        "KEY": key,
        "SCORERS": " and ".join(f"`{scorer}`" for scorer in scorers),
        "WHY": f" ({shape.why})" if shape.why and not asked.eval_fns else "",
    }
    extra = "[math]" if "math" in scorers else ""
    files: dict[str, str | Path] = {
        "agent.py": _filled("agent.py.txt", known),
        SETTINGS: _settings(name, asked, options),
        README: _filled("README.md", known),
        _WORKFLOW: _filled("evaluate.yml", known),
    }
    if not (folder / _REQUIREMENTS).exists():
        files[_REQUIREMENTS] = f"pytest-osmosis{extra}\n"
    return {**files, name: asked.data} if copied else files


def _shape(asked: Asked) -> Shape:
    """Return what the file probably is, by its first rows."""
    try:
        path = local_file(asked.data)
        file, kind = open_dataset(path)
        with file, closing(kind.open(file, path)) as source:
            rows = source.scan(None, 0, SAMPLED, Problems(path, source.unit))
            return shape_of([decode(raw) for _, _, raw in islice(rows, SAMPLED)])
    except DatasetError as error:
        raise CommandError(f"--data {error}", code="invalid") from None


def _options(asked: Asked, shape: Shape) -> list[tuple[str, str]]:
    """Return the options of the evaluation; what the user says takes the place of a guess."""
    if not (shape.has_prompt or asked.maps):
        raise _unclear(asked, "no column is a question: give --map COLUMN=user_prompt")
    judge = {"model": asked.model, **({"api_base": asked.base_url} if asked.base_url else {})}
    found = [
        (name, with_judge(value, judge) if name == "eval-fn" else value)
        for name, value in shape.flags()
    ]
    if asked.maps:
        own = {text.rpartition("=")[2] for text in asked.maps}
        found = [
            (name, value)
            for name, value in found
            if name != "map" or value.rpartition("=")[2] not in own
        ]
        found += [("map", text) for text in asked.maps]
    elif shape.either:
        choices = " or ".join(f"--map {text}" for text in shape.either)
        raise _unclear(asked, f"two columns may be the ground truth: give {choices}")
    if asked.eval_fns:
        found = [pair for pair in found if pair[0] != "eval-fn"]
        found += [("eval-fn", name) for name in asked.eval_fns]
    if not any(name == "eval-fn" for name, _ in found):
        raise _unclear(asked, "nothing says what scores it: give --eval-fn")
    _check(asked.data, found)
    return found


def _unclear(asked: Asked, what: str) -> CommandError:
    return CommandError(f"--data {as_typed(asked.data)}: {what}", code="usage", status=2)


def _check(data: Path, options: Sequence[tuple[str, str]]) -> None:
    """Raise CommandError where the rows cannot be read so."""

    def given(option: str) -> list[str]:
        return [value for name, value in options if name == option]

    try:
        load_dataset(
            local_file(data),
            mapping=mapping_of(given("map")),
            template=next(iter(given("prompt-template")), None),
            where=given("where"),
        )
    except (DatasetError, ValueError) as error:
        raise CommandError(f"--data {error}", code="invalid") from None


def _place(data: Path, folder: Path) -> tuple[str, bool]:
    """Return what the settings call the data file, and whether it must be copied for that."""
    if (text := as_typed(data)).startswith(SCHEME):
        return text, False
    try:
        return data.resolve().relative_to(folder.resolve()).as_posix(), False
    except ValueError:
        return data.name, True


def _key(asked: Asked) -> str:
    """Return the variable that usually has the model's key."""
    if asked.base_url is None and asked.model.partition("/")[0] != "embedded":
        try:
            return next(iter(key_variables(parse_model_name(asked.model).provider)))
        except (ValueError, StopIteration):
            pass
    return "OPENAI_API_KEY"


def _settings(name: str, asked: Asked, options: Iterable[tuple[str, str]]) -> str:
    values = [("agent", "agent:agent"), ("data", name), *options, ("model", asked.model)]
    if asked.base_url is not None:
        values.append(("base-url", asked.base_url))
    lines = ["[tool.pytest.ini_options]", *_lines([*values, ("batch-size", "16")]), NO_GATES]
    return "\n".join(lines) + "\n"


def _lines(values: Sequence[tuple[str, str]]) -> Iterable[str]:
    """Yield the settings; what may be given several times is a list."""
    table = {option.name: option for option in OPTIONS}
    for name in dict.fromkeys(name for name, _ in values):
        option = table[name]
        given: list[str] | str = [value for each, value in values if each == name]
        if not option.repeatable or name in ("agent", "model"):
            given = given[-1]
        yield f"{option.ini_name} = {json.dumps(given, ensure_ascii=False)}"


def _filled(template: str, known: Mapping[str, str]) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in known.items():
        text = text.replace(f"@{name}@", value)
    return text


def write(folder: Path, files: Mapping[str, str | Path]) -> None:
    """Write the files of a project."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, path)
        else:
            path.write_bytes(content.encode())


# ---- gates


def gates_of(report: Path) -> list[tuple[str, str]]:
    """Return a gate for each eval function of a report, and what it was made of.

    Raises:
        CommandError: when a gate there would say nothing.
    """
    try:
        document, _ = load_report(report)
    except UnreadableReport as error:
        raise CommandError(f"--gate {error}", code="invalid") from None
    if document.suites:
        raise _no_gate(report, "it has several evaluations: make one of a single evaluation")
    summary = document.summary
    if not summary.complete:
        raise _no_gate(report, "its evaluation is not complete: run the same command again")
    is_one = len(summary.eval_fns) == 1
    return [
        _gate(report, "mean" if is_one else f"mean[{name}]", figures, summary.total_rows)
        for name, figures in summary.eval_fns.items()
    ]


def _gate(report: Path, metric: str, figures: Any, rows: int) -> tuple[str, str]:
    interval = (figures.intervals or {}).get("mean")
    if interval is None or interval.low is None:
        raise _no_gate(report, f"{metric} has no interval: evaluate more rows")
    lowest = math.floor(interval.low * _DIGITS) / _DIGITS
    reached = f"{figures.mean:.3f} ({interval.low:.3f} .. {interval.high:.3f}) over {rows} rows"
    if figures.min is None or lowest <= min(0.0, figures.min):
        raise _no_gate(
            report, f"{metric} is {reached}: a gate that low could not fail; evaluate more rows"
        )
    return f"{metric} >= {lowest:g}", f"{metric} was {reached}"


def _no_gate(report: Path, why: str) -> CommandError:
    return CommandError(f"--gate {report}: {why}", code="no_gate")


def write_gates(folder: Path, gates: Sequence[str]) -> Path:
    """Put the gates into the settings of a project, and into what its pull requests run.

    Raises:
        CommandError: where the settings have no place for them.
    """
    path, line = folder / SETTINGS, f"osmosis_gates = {json.dumps(list(gates))}"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if NO_GATES not in text.splitlines():
        has = any(each.startswith("osmosis_gates") for each in text.splitlines())
        raise CommandError(
            f"{path}: has osmosis_gates already; put this in their place if you want it: {line}"
            if has
            else f"{path}: has no line {NO_GATES!r}, which `osmosis init --data` writes; put this "
            f"into your settings: {line}",
            code="no_place",
        )
    path.write_text(text.replace(NO_GATES, line, 1), encoding="utf-8")
    workflow = folder / _WORKFLOW
    if workflow.is_file():
        also = (f" \\\n              --osmosis-gate {shlex.quote(gate)}" for gate in gates)
        text = workflow.read_text(encoding="utf-8")
        text = text.replace(_AGAINST_MAIN, _AGAINST_MAIN + "".join(also), 1)
        workflow.write_text(text, encoding="utf-8")
    return path
