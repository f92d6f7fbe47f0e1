"""Uploading datasets, in one piece or in parts, and listing them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from osmosis_ai.platform.config_models import Rule
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN

from ..database.models import Dataset
from ..datasets import records
from ..datasets.completion import complete
from ..datasets.files import DatasetFiles
from ..datasets.upload_urls import upload_document
from ..errors import Refused
from ..execution.deletion import delete_dataset
from ..http.endpoints import Answer, Call, Endpoint, Needs
from ..http.fields import Fields, Page, page_document
from ..http.validation import refused_fields
from ..http.values import check_size, checked_extension, is_file_name

PATH = "/api/cli/datasets"
ONE = f"{PATH}/{{id}}"


def _file_name(text: str) -> str:
    if not is_file_name(text):
        raise ValueError
    return text


def _etag(text: str) -> str:
    return text.strip('"')


class NewDataset(Fields):
    """A file that is going to be uploaded."""

    file_name: Annotated[
        str, Field(min_length=1), AfterValidator(_file_name), Rule("the name of a file")
    ]
    file_size: Annotated[int, Field(ge=1, le=2**53), Rule("a number of bytes, 1 or more")]
    extension: Annotated[str, Rule(f"one of {SUFFIXES_SHOWN}")]


class UploadedPart(Fields):
    """A part as the client knows it."""

    part_number: Annotated[int, Field(ge=1, le=100_000), Rule("a number from 1")]
    etag: Annotated[
        str, Field(max_length=200), AfterValidator(_etag), Rule("the ETag of the answer")
    ]


class Completion(Fields):
    """Every part of an upload; none for one in one piece."""

    parts: list[UploadedPart] = Field(default=[], max_length=100_000)


def _create(call: Call[NewDataset, None]) -> Answer:
    limits = call.settings.limits
    extension = checked_extension(call.body.extension)
    if not call.body.file_name.lower().endswith(f".{extension}"):
        raise refused_fields([("file_name", "must end in the extension")])
    check_size(call.body.file_size, limits.dataset_bytes)
    dataset = records.create(
        call.session,
        call.workspace,
        creator_id=call.caller.user_id,
        file_name=call.body.file_name,
        file_size=call.body.file_size,
        extension=extension,
        limits=limits,
    )
    _files(call, dataset).make()
    return Answer({**records.shown(dataset), "upload": _upload(call, dataset)}, status=201)


def _parts(call: Call[None, None]) -> Answer:
    dataset = _unfinished(call)
    found = [
        {"part_number": part.number, "etag": part.etag, "size": part.size}
        for part in _files(call, dataset).parts()
    ]
    document: dict[str, Any] = {"id": dataset.id, "parts": found}
    if call.workspace.may_write:  # the URLs need no token
        document["upload"] = _upload(call, dataset)
    return Answer(document)


def _complete(call: Call[Completion, None]) -> Answer:
    with call.database.reading() as session:
        dataset = records.find(session, call.workspace.id, call.path["id"])
    etags = {part.part_number: part.etag for part in call.body.parts}
    if len(etags) != len(call.body.parts):
        raise refused_fields([("parts", "name a part twice")])
    complete(call.database, call.checks, _files(call, dataset), dataset, etags)
    with call.database.reading() as session:
        return Answer(records.shown(records.find(session, call.workspace.id, dataset.id)))


def _abort(call: Call[None, None]) -> Answer:
    dataset = _unfinished(call)
    delete_dataset(call.session, call.settings.data, dataset)
    return Answer({"id": dataset.id, "status": "aborted"})


def _delete(call: Call[None, None]) -> Answer:
    dataset = records.find_named(call.session, call.workspace.id, call.path["id"])
    answer = {"id": dataset.id, "file_name": dataset.file_name, "deleted": True}
    delete_dataset(call.session, call.settings.data, dataset)
    return Answer(answer)


def _list(call: Call[None, Page]) -> Answer:
    page = call.query
    found, total = records.newest(
        call.session, call.workspace.id, limit=page.limit, offset=page.offset
    )
    return Answer(page_document("datasets", [*map(records.shown, found)], total, page))


def _unfinished(call: Call[None, None]) -> Dataset:
    dataset = records.find(call.session, call.workspace.id, call.path["id"])
    if dataset.status == "ready":
        raise Refused(409, "already_complete", "the upload is complete")
    return dataset


def _files(call: Call[Any, Any], dataset: Dataset) -> DatasetFiles:
    return DatasetFiles(call.settings.data, dataset.id, dataset.extension)


def _upload(call: Call[Any, Any], dataset: Dataset) -> dict[str, Any]:
    expires_s = call.settings.limits.upload_expires_s
    return upload_document(call.vault, call.base_url, dataset, expires_s)


DATASETS = (
    Endpoint("GET", PATH, _list, query=Page),
    Endpoint("POST", PATH, _create, Needs.WRITE, body=NewDataset),
    Endpoint("GET", f"{ONE}/parts", _parts),
    Endpoint(
        "POST", f"{ONE}/complete", _complete, Needs.WRITE, body=Completion, in_transaction=False
    ),
    Endpoint("POST", f"{ONE}/abort", _abort, Needs.WRITE),
    Endpoint("DELETE", ONE, _delete, Needs.WRITE),
)
