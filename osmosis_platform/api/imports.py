"""Uploading an evaluation that ran on a user's machine: it becomes a run that has finished."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, create_model

from osmosis_ai.platform.config_models import Rule
from osmosis_ai.platform.run_kinds import EVALUATION

from ..database.models import Run
from ..datasets import uploads
from ..errors import Refused
from ..execution.deletion import delete_dataset
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, Needs
from ..http.validation import Fields, refused_fields
from ..imports import records
from ..runs.submissions import Submission, name_problems, submission_model
from .datasets import Completion, etags_of
from .runs import run_summary

PATH = f"/api/cli/{EVALUATION.segment}"
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$"), Rule("a sha256 in hexadecimal digits")]


class UploadedFile(Fields):
    """The file that is going to be uploaded: a report, and conversations, as lines of JSON."""

    size: Annotated[int, Field(ge=1, le=2**53), Rule("a number of bytes, 1 or more")]
    digest: Digest


class NewImport(Fields):
    """An evaluation that is going to be uploaded."""

    config: Submission
    dataset_digest: Digest
    file: UploadedFile


_NewImport = create_model(
    "NewImport", __base__=NewImport, config=(submission_model(EVALUATION), ...)
)


def _begin(call: ApiCall[NewImport, None]) -> ApiAnswer:
    body = call.body
    if problems := [(f"config.{name}", rule) for name, rule in name_problems(body.config)]:
        raise refused_fields(problems)
    run = records.known_run(call.session, call.workspace.id, body.file.digest)
    if run is not None:
        return ApiAnswer({**run_summary(call, run), "upload": None})
    section = body.config.section
    order = {
        "digest": body.file.digest,
        "dataset_digest": body.dataset_digest,
        "model": section["experiment_config"]["model_path"],
    }
    upload = records.begin(
        call.session,
        call.workspace,
        call.settings.data,
        user_id=call.caller.user_id,
        submission=body.config,
        order=order,
        size=body.file.size,
        limits=call.settings.limits,
    )
    expires_s = call.settings.limits.upload_expires_s
    document = uploads.upload_document(call.vault, call.base_url, upload, expires_s)
    return ApiAnswer({"id": upload.id, "upload": document}, status=201)


def _complete(call: ApiCall[Completion, None]) -> ApiAnswer:
    workspace, number = call.workspace.id, call.path["name"]
    etags = etags_of(call.body)
    with call.database.reading() as session:
        run = session.get(Run, number)  # the answer to an earlier try was lost
        upload = None
        if run is None or run.workspace_id != workspace:
            upload = records.find(session, workspace, number)
    if upload is not None:
        try:
            run = records.complete(call.database, call.checks, call.settings.data, upload, etags)
            if run.id != number:  # another one of the same file was first
                _forget(call, number)
        except Refused as error:
            if error.status == 422:  # no other try can be better
                _forget(call, number)
            raise
    assert run is not None
    with call.database.reading() as session:
        summary = run_summary(call, session.get_one(Run, run.id))
    return ApiAnswer(summary)


def _forget(call: ApiCall[Completion, None], number: str) -> None:
    with call.database.writing() as session:
        upload = records.find(session, call.workspace.id, number)
        delete_dataset(session, call.settings.data, upload)


def _abort(call: ApiCall[None, None]) -> ApiAnswer:
    upload = records.find(call.session, call.workspace.id, call.path["name"])
    delete_dataset(call.session, call.settings.data, upload)
    return ApiAnswer({"id": upload.id, "status": "aborted"})


IMPORTS = (
    Endpoint("POST", f"{PATH}/import", _begin, Needs.WRITE, body=_NewImport),
    Endpoint(
        "POST",
        f"{PATH}/{{name}}/complete",
        _complete,
        Needs.WRITE,
        body=Completion,
        in_transaction=False,
    ),
    Endpoint("POST", f"{PATH}/{{name}}/abort", _abort, Needs.WRITE),
)
