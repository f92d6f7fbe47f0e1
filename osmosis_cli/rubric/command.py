"""`osmosis eval rubric`, also `osmosis eval-rubric`: recorded answers scored by an LLM judge.

Translates the command line into a plan, runs it, shows and keeps what came of it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_osmosis.dataset.formats import RECORD_SUFFIXES_SHOWN

from ..errors import CommandError, command_errors, wrong_use
from ..eval.lines import progress_bar
from ..shared_options import check_output, print_json, write_json

if TYPE_CHECKING:
    from .config import RubricConfig
    from .judging import Judged, JudgingPlan
    from .records import Record

INLINE = "inline"
"""The id of a rubric that is given as a text."""
DEFAULT_NAMES = ("rubric_configs.yaml", "rubric_configs.yml")
usage = partial(command_errors, code="usage", status=2)

EPILOG = """\b
Examples:
  osmosis eval rubric --rubric support_followup --data answers.jsonl
  osmosis eval-rubric --rubric support_followup --data answers.jsonl
  osmosis eval rubric --rubric support_followup -d answers.jsonl -n 3 \\
      --batch-size 16 --output results/ --model anthropic/claude-sonnet-4-5
  osmosis eval rubric -r 'Polite and to the point?' -d answers.jsonl \\
      --model openai/gpt-5-mini
  osmosis eval rubric -r support_followup -d answers.jsonl -b earlier.json
"""


@click.command("rubric", epilog=EPILOG)
@click.option(
    "-r",
    "--rubric",
    "given",
    required=True,
    metavar="ID|TEXT|@FILE",
    help="The rubric: one word is its id in the rubric file, several are its text; @FILE has it.",
)
@click.option(
    "-d",
    "--data",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"Records to judge: {RECORD_SUFFIXES_SHOWN}, each with a solution_str or messages.",
)
@click.option(
    "-c",
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The rubric file. Default: rubric_configs.yaml beside the data or here.",
)
@click.option(
    "-n",
    "--number",
    "runs",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Judgements of each record.",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="File or directory for the results. Default: a file in the cache directory.",
)
@click.option("--model", metavar="PROVIDER/MODEL", help="Another judge than the rubric file names.")
@click.option(
    "-b",
    "--baseline",
    "baseline_path",
    metavar="RESULT",
    type=click.Path(path_type=Path),
    help="Compare with this earlier result file.",
)
@click.option(
    "--eval-fn",
    metavar="MODULE:FUNCTION",
    help="Have this @osmosis_rubric function judge; extra_info tells it the rubric and the judge.",
)
@click.option(
    "--batch-size",
    default=8,
    show_default=True,
    type=click.IntRange(1, 1024),
    metavar="B",
    help="Judgements in flight at once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
def rubric_command(
    given: str,
    data: Path,
    config: Path | None,
    output: str | None,
    model: str | None,
    baseline_path: Path | None,
    eval_fn: str | None,
    as_json: bool,
    **amounts: int,
) -> None:
    """Score recorded answers by a rubric, with an LLM as the judge.

    Local: it needs neither a workspace nor a login. The exit status is 1 when a judgement failed.
    """
    from osmosis_ai.rubric.errors import MissingAPIKeyError
    from osmosis_ai.rubric.settings import judge_settings

    from .judging import JudgingPlan, check_ground_truths, load_function
    from .output import document_of, lines, load_baseline, result_path

    chosen = choose_rubric(given, config=config, data=data, model=model)
    records = _records(data, None if chosen.is_inline else chosen.id)
    compared = None if baseline_path is None else (baseline_path, load_baseline(baseline_path))
    with (
        usage(TypeError, ValueError, where=f"{chosen.place}: "),
        command_errors(MissingAPIKeyError, code="missing_api_key", status=2),
    ):
        settings = judge_settings(chosen.model_info, needs_key=eval_fn is None)
    target = result_path(output, chosen.id, time.time())
    check_output(target, "--output")
    plan = JudgingPlan(
        config=chosen,
        settings=settings,
        records=records,
        data=data,
        **amounts,
        function=None if eval_fn is None else load_function(eval_fn),
    )
    check_ground_truths(plan)
    judged = _judge(plan, quiet=as_json)
    document = document_of(plan, judged.runs, data=data, compared_with=compared)
    write_json(target, document)
    if not as_json:
        for line in lines(document):
            click.echo(line)
        click.echo(f"results: {target}")
    if judged.first_error is not None:
        counted = document["counts"]
        raise CommandError(
            f"{counted['runs'] - counted['scored']} of {counted['runs']} judgements have no score; "
            f"the first: {judged.first_error}",
            code="provider_error",
            details={
                "output": str(target),
                "counts": counted,
                "statistics": document["overall_statistics"],
            },
        )
    if as_json:
        print_json({**document, "output": str(target)})


def choose_rubric(
    given: str, *, config: Path | None, data: Path, model: str | None
) -> RubricConfig:
    """Return the rubric that is named by its id, is in `@FILE`, or is the text itself.

    One word is an id; so is everything beside a `config`. Several words are a text.
    """
    from .config import RubricConfig, RubricFileError, load_rubrics, pick_rubric

    if given.startswith("@") or (config is None and len(given.split()) > 1):
        place = given[1:] if given.startswith("@") else "--rubric"
        name = Path(place).stem if given.startswith("@") else INLINE
        text = _read(Path(place)) if given.startswith("@") else given
        if not text.strip():
            raise wrong_use(f"{place}: the rubric is empty: say what the judge is to look for")
        if model is None:
            raise wrong_use(
                "a rubric that is given as a text names no judge: give --model PROVIDER/MODEL, "
                "such as openai/gpt-5-mini"
            )
        chosen = RubricConfig(
            id=name, rubric=text, model_info={}, place=place, source=place, is_inline=True
        )
    else:
        path = config or _config_beside(data)
        with usage(RubricFileError, where="--config " if config else ""):
            chosen = pick_rubric(path, load_rubrics(path), given)
    with usage(ValueError, where="--model: "):
        return chosen.with_judge(model) if model else chosen


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong_use(f"--rubric @{path}: is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise wrong_use(f"--rubric @{path}: {error.strerror or error}") from None


def _config_beside(data: Path) -> Path:
    if not data.exists():
        raise wrong_use(f"--data {data}: no such file")
    places = [where / name for where in (data.parent, Path()) for name in DEFAULT_NAMES]
    for place in places:
        if place.is_file():
            return place
    raise wrong_use(
        f"there is no {DEFAULT_NAMES[0]} beside {data} nor in {Path.cwd()}; name the rubric file "
        "with --config, or give the rubric itself: --rubric 'its text' or --rubric @FILE"
    )


def _records(data: Path, rubric_id: str | None) -> list[Record]:
    """Return the records for a rubric; without an id, which none names, all of them."""
    from .records import DatasetError, load_records

    with usage(DatasetError, where="--data "):
        records = load_records(data)
    if rubric_id is None:
        return records
    mine = [record for record in records if record.rubric_id in (None, rubric_id)]
    if not mine:
        others = sorted({str(record.rubric_id) for record in records})
        raise wrong_use(
            f"--data {data}: none of its {len(records)} records is for {rubric_id!r} "
            f"(they are for {', '.join(others[:5])})"
        )
    skipped = len(records) - len(mine)
    if skipped:
        click.echo(f"{skipped} of {len(records)} records are for other rubrics: skipped", err=True)
    return mine


def _judge(plan: JudgingPlan, *, quiet: bool) -> Judged:
    from osmosis_ai.models.litellm.library import load

    from .judging import judge_all

    with suppress(ImportError):  # seconds; the first judgement reports why it cannot be imported
        load()
    with progress_bar(len(plan.records) * plan.runs, "judging", is_silent=quiet) as advance:
        return asyncio.run(judge_all(plan, advance))
