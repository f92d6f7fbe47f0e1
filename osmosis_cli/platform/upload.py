"""`osmosis eval upload`: the results of `osmosis eval run` become a run on the platform.

What is sent is one file of JSON lines: the report, then the conversations. Secrets are masked in
both once more. The platform computes figures and gates itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import EVALUATION

from ..errors import CommandError, command_errors
from ..eval.lines import say, tell
from ..shared_options import json_option, masked_json, print_json

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient
    from osmosis_ai.platform.config_models import EvalConfig
    from pytest_osmosis.run_result import SuiteInfo
    from pytest_osmosis.suite_results import EvalResult

REPORT, CONFIG = "report.json", "config.toml"
"""What `osmosis eval run` writes for this command, beside the other results."""
ENDED = (0, 1, 8)
"""Statuses of an evaluation whose runs have ended."""
_AGAIN = "run the same `osmosis eval run` again, which resumes"
EPILOG = """\b
Examples:
  osmosis eval upload .osmosis/evals/my-rollout
  osmosis eval run configs/eval/my-rollout.toml --upload
"""


@click.command("upload", epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def eval_upload_command(folder: Path, as_json: bool) -> None:
    """Upload the results of an evaluation that ran here to the platform.

    DIR is the folder that `osmosis eval run` has written, with its report, conversations and
    config file. The evaluation must have ended. It becomes a run that is marked as local; the
    platform computes its figures and gates from its scores. Uploading it twice makes one run.
    """
    answer = _upload(folder)
    if as_json:
        print_json({EVALUATION.key: answer})
        return
    for line in _told(answer):
        say(line)


def check_login() -> None:
    """Raise CommandError where nothing could be uploaded."""
    from .connection import active_login, workspace_repository

    active_login()
    workspace_repository()


def upload_after(folder: Path, status: int, secrets: Sequence[str]) -> None:
    """Upload what an evaluation of this exit status has left; say so on standard error."""
    from osmosis_ai.secret import Secret, mask_everywhere

    if status not in ENDED:
        tell(f"nothing was uploaded: the evaluation ended with status {status}")
        return
    mask_everywhere(*(Secret(value) for value in secrets if value))
    try:
        answer = _upload(folder)
    except CommandError as error:
        text = f"{error.message}; upload the results later: osmosis eval upload {folder}"
        raise CommandError(text, code=error.code, details=error.details) from None
    for line in _told(answer):
        tell(line)


def _told(answer: dict[str, Any]) -> Iterator[str]:
    from osmosis_ai.platform.answers import run_record

    from .run_text import copyable, render

    run = run_record(answer, EVALUATION.key)
    known = "uploaded already" if "upload" in answer else "uploaded"
    yield f"{known}: {render(run.label)}, {render(run.status)}, local"
    if run.platform_url:
        yield f"  {render(run.platform_url)}"
    yield f"its figures: osmosis eval info {copyable(run)}"


def _upload(folder: Path) -> dict[str, Any]:
    """Upload a folder; return what the platform answers."""
    from osmosis_ai.platform.datasets import upload_of
    from osmosis_ai.platform.runs import Runs

    from .connection import connect
    from .dataset import send_file

    config, result = _config(folder), _result(folder / REPORT)
    payload = _payload(config, result.suites[0].info)
    _mask(config.secrets.required)
    with tempfile.TemporaryFile() as file, connect() as client:
        about, lines = _write(folder / REPORT, file)
        runs = sum(suite.finished for suite in result.with_companions)
        if lines <= runs:
            tell(f"{runs + 1 - lines:,} of {runs:,} runs are uploaded without a conversation")
        payload = json.loads(masked_json({"config": payload, **about}))
        payload["dataset_digest"] = result.suites[0].info.digest
        answer = _begin(client, Runs(client, EVALUATION), payload)
        if "upload" in answer and answer["upload"] is None:
            return answer
        upload = upload_of(client, answer, EVALUATION.segment, about["file"]["size"])
        return send_file(client, upload, f"the results in {folder}", file.fileno())


def _begin(client: PlatformClient, runs: Any, payload: dict[str, Any]) -> dict[str, Any]:
    from osmosis_ai.platform.client import PlatformError

    try:
        found: dict[str, Any] = runs.begin_import(payload)
    except PlatformError as error:
        if error.status not in (404, 405):
            raise
        raise CommandError(
            f"{client.origin} takes no evaluations that ran elsewhere; submit the config file "
            "with `osmosis eval submit`, or upload to a platform of your own",
            code="not_supported",
        ) from None
    return found


def _config(folder: Path) -> EvalConfig:
    from osmosis_ai.platform.config_file import ConfigError, read_config
    from osmosis_ai.platform.config_models import EvalConfig

    missing = [name for name in (REPORT, CONFIG) if not (folder / name).is_file()]
    if missing:
        raise CommandError(
            f"{folder} {f'has no {missing[0]}' if folder.is_dir() else 'is no folder'}: name the "
            "folder that `osmosis eval run` has written, such as .osmosis/evals/my-rollout",
            code="no_results",
            status=2,
        )
    with command_errors(ConfigError, code="invalid_config"):
        return read_config(EvalConfig, folder / CONFIG).config


def _result(path: Path) -> EvalResult:
    """Return the result; CommandError for one that is damaged, or has not ended."""
    from ..eval.report import readable

    with readable():
        from pytest_osmosis.reports.json_reader import read_result

        result = read_result(path)
    if len(result.suites) != 1:
        raise CommandError(
            f"{path} has {len(result.suites)} evaluations, and one is uploaded: run the config "
            "file with one agent and one model",
            code="several",
        )
    [suite] = result.suites
    if result.is_decided:
        text = "it was stopped once its gates were decided: run it without --stop-when-decided"
        raise CommandError(f"{path} has not all runs: {text}", code="unfinished")
    if not suite.complete or result.halted or result.interrupted:
        raise CommandError(
            f"{path} has {suite.finished:,} of {suite.info.total_runs:,} runs, since the "
            f"evaluation ended before its time: {_AGAIN}",
            code="unfinished",
        )
    return result


def _payload(config: EvalConfig, info: SuiteInfo) -> dict[str, Any]:
    """Return the config of what was evaluated: options beat the file."""
    from osmosis_ai.platform.workspace import ROLLOUTS
    from pytest_osmosis.run_result import OWN_MODEL

    payload = config.payload()
    payload.pop("evaluation_config", None)  # the report says what was used
    experiment = payload["experiment_config"]
    entrypoint = PurePath(ROLLOUTS, experiment["rollout"], experiment["entrypoint"]).parts
    if PurePath(info.agent.partition(":")[0]).parts[-len(entrypoint) :] != entrypoint:
        raise CommandError(
            f"the report is of the agent {info.agent}, and {CONFIG} beside it names "
            f"{'/'.join(entrypoint)}: evaluate the config file again",
            code="mixed",
        )
    name = PurePath(info.data).name
    if not name.startswith(f"{experiment['dataset']}."):
        experiment["dataset"] = name.partition(".")[0] or name
    if info.model != OWN_MODEL:
        experiment["model_path"] = info.model
    return payload


def _mask(required: Sequence[str]) -> None:
    """Mask what secrets the environment holds, wherever text leaves this process."""
    from osmosis_ai.secret import mask_everywhere
    from osmosis_ai.secret_variables import secret_variables

    mask_everywhere(*secret_variables(*required))


def _write(report: Path, file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """Write what is sent; return its size and digest, and the number of its lines."""
    digest, lines = hashlib.sha256(), 0
    try:
        for line in _lines(report):
            lines += 1
            digest.update(line)
            file.write(line)
    except OSError as error:
        raise CommandError(f"{report.parent}: {error.strerror or error}", code="output") from None
    file.flush()
    size = os.fstat(file.fileno()).st_size
    return {"file": {"size": size, "digest": digest.hexdigest()}}, lines


def _lines(report: Path) -> Iterator[bytes]:
    from pytest_osmosis.reports.saved_conversations import beside

    yield _line(json.loads(report.read_bytes()))
    said = beside(report)
    if not said.exists():
        return
    with said.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _line(json.loads(line))
            except (ValueError, RecursionError):
                raise CommandError(
                    f"{said}:{number}: not the line of a conversation: {_AGAIN}", code="invalid"
                ) from None


def _line(document: Any) -> bytes:
    return masked_json(document).encode("ascii") + b"\n"
