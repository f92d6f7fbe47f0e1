"""Uploading datasets, in one piece or in parts by signed URLs, and listing them."""

from __future__ import annotations

import re
from typing import Annotated, Any

import anyio
from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from osmosis_ai.platform.config_models import Rule
from pytest_osmosis.dataset.formats import SUFFIXES, SUFFIXES_SHOWN

from ..database.connection import Database
from ..database.models import Dataset
from ..datasets import records, uploads
from ..datasets.files import DatasetFiles, PartWriter, upload_gone
from ..errors import Refused
from ..execution.deletion import delete_dataset
from ..http.bodies import CLOSE, content_length
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, Needs
from ..http.validation import Fields, Page, page_document, refused_fields
from ..settings import ServerLimits

PATH = "/api/cli/datasets"
ONE = f"{PATH}/{{id}}"


_NAME_BYTES = 255


def _file_name(text: str) -> str:
    """Return the name of a file, which is no path."""
    is_path = "/" in text or "\\" in text or text.startswith(".")
    if is_path or not text.isprintable() or len(text.encode("utf-8", "replace")) > _NAME_BYTES:
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


def etags_of(body: Completion) -> dict[int, str]:
    """Return the etag of each part by its number; refuse a part that is named twice."""
    etags = {part.part_number: part.etag for part in body.parts}
    if len(etags) != len(body.parts):
        raise refused_fields([("parts", "name a part twice")])
    return etags


def _create(call: ApiCall[NewDataset, None]) -> ApiAnswer:
    limits = call.settings.limits
    extension = call.body.extension.removeprefix(".").lower()
    if f".{extension}" not in SUFFIXES:
        raise refused_fields([("extension", f"must be one of {SUFFIXES_SHOWN}")])
    if not call.body.file_name.lower().endswith(f".{extension}"):
        raise refused_fields([("file_name", "must end in the extension")])
    if call.body.file_size > limits.dataset_bytes:
        message = f"file_size: a dataset has at most {limits.dataset_bytes:,} bytes"
        raise Refused(413, "too_large", message, field="file_size")
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
    return ApiAnswer(
        {**records.dataset_document(dataset), "upload": _upload(call, dataset)}, status=201
    )


def _parts(call: ApiCall[None, None]) -> ApiAnswer:
    dataset = _unfinished(call)
    found = [
        {"part_number": part.number, "etag": part.etag, "size": part.size}
        for part in _files(call, dataset).parts()
    ]
    document: dict[str, Any] = {"id": dataset.id, "parts": found}
    if call.workspace.may_write:  # the URLs need no token
        document["upload"] = _upload(call, dataset)
    return ApiAnswer(document)


def _complete(call: ApiCall[Completion, None]) -> ApiAnswer:
    with call.database.reading() as session:
        dataset = records.find(session, call.workspace.id, call.path["id"])
    etags = etags_of(call.body)
    uploads.complete(call.database, call.checks, _files(call, dataset), dataset, etags)
    with call.database.reading() as session:
        return ApiAnswer(
            records.dataset_document(records.find(session, call.workspace.id, dataset.id))
        )


def _abort(call: ApiCall[None, None]) -> ApiAnswer:
    dataset = _unfinished(call)
    delete_dataset(call.session, call.settings.data, dataset)
    return ApiAnswer({"id": dataset.id, "status": "aborted"})


def _delete(call: ApiCall[None, None]) -> ApiAnswer:
    dataset = records.find_named(call.session, call.workspace.id, call.path["id"])
    answer = {"id": dataset.id, "file_name": dataset.file_name, "deleted": True}
    delete_dataset(call.session, call.settings.data, dataset)
    return ApiAnswer(answer)


def _list(call: ApiCall[None, Page]) -> ApiAnswer:
    page = call.query
    found, total = records.newest(
        call.session, call.workspace.id, limit=page.limit, offset=page.offset
    )
    return ApiAnswer(
        page_document("datasets", [*map(records.dataset_document, found)], total, page)
    )


def _unfinished(call: ApiCall[None, None]) -> Dataset:
    dataset = records.find(call.session, call.workspace.id, call.path["id"])
    if dataset.status == "ready":
        raise Refused(409, "already_complete", "the upload is complete")
    return dataset


def _files(call: ApiCall[Any, Any], dataset: Dataset) -> DatasetFiles:
    return DatasetFiles(call.settings.data, dataset.id, dataset.extension)


def _upload(call: ApiCall[Any, Any], dataset: Dataset) -> dict[str, Any]:
    expires_s = call.settings.limits.upload_expires_s
    return uploads.upload_document(call.vault, call.base_url, dataset, expires_s)


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


_BLOCK = 1024 * 1024


async def upload(request: Request) -> Response:
    """Take a part."""
    dataset_id = request.path_params["id"]
    expires, signature = (request.query_params.get(key, "") for key in ("expires", "signature"))
    number = _number(request.path_params["number"])
    vault = request.app.state.vault
    uploads.check(vault, dataset_id, number, _number(expires), signature)
    dataset = await run_in_threadpool(_find, request.app.state.database, dataset_id)
    size = uploads.part_size(dataset, number)
    if content_length(request) not in (None, size):
        raise _wrong_size(size)
    settings = request.app.state.settings
    files = DatasetFiles(settings.data, dataset.id, dataset.extension)
    with files.receive(number) as part:
        await _receive(request, part, size, settings.limits)
        etag = await run_in_threadpool(part.finish)
    try:
        await run_in_threadpool(_find, request.app.state.database, dataset_id)
    except Refused:  # it was completed meanwhile, of other parts
        await run_in_threadpool(files.remove_parts)
        raise
    document = {"part_number": number, "etag": etag, "size": size}
    return JSONResponse(document, headers={"ETag": f'"{etag}"'})


async def _receive(request: Request, part: PartWriter, size: int, limits: ServerLimits) -> None:
    stream = aiter(request.stream())
    waiting, total = bytearray(), 0
    try:
        with anyio.fail_after(limits.upload_expires_s):
            while True:
                with anyio.fail_after(limits.upload_pause_s):
                    block = await anext(stream, None)
                if block is None:
                    break
                total += len(block)
                if total > size:
                    raise _wrong_size(size)
                waiting += block
                if len(waiting) >= _BLOCK:
                    await run_in_threadpool(part.write, bytes(waiting))
                    waiting.clear()
    except TimeoutError:
        raise Refused(408, "timeout", "the upload took too long", headers=CLOSE) from None
    if total != size:
        raise _wrong_size(size)
    await run_in_threadpool(part.write, bytes(waiting))


def _number(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,12}", text) else 0


def _find(database: Database, dataset_id: str) -> Dataset:
    with database.reading() as session:
        dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.status not in ("uploading", records.IMPORTING):
        raise upload_gone()
    return dataset


def _wrong_size(size: int) -> Refused:
    return Refused(400, "wrong_size", f"this part has {size:,} bytes", headers=CLOSE)


UPLOADS = [Route(f"{uploads.PATH}/{{id}}/{{number}}", upload, methods=["PUT"])]
