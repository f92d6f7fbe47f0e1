"""Where the bytes of a part are sent: by a signed URL, without a token."""

from __future__ import annotations

import re

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..database.connection import Database
from ..database.models import Dataset
from ..datasets import upload_urls
from ..datasets.files import DatasetFiles, PartWriter, upload_gone
from ..errors import Refused
from ..http.bodies import CLOSE, content_length
from ..settings import Limits

_BLOCK = 1024 * 1024


async def upload(request: Request) -> Response:
    """Take a part."""
    dataset_id = request.path_params["id"]
    expires, signature = (request.query_params.get(key, "") for key in ("expires", "signature"))
    number = _number(request.path_params["number"])
    vault = request.app.state.vault
    upload_urls.check(vault, dataset_id, number, _number(expires), signature)
    dataset = await run_in_threadpool(_find, request.app.state.database, dataset_id)
    size = upload_urls.part_size(dataset, number)
    if content_length(request) not in (None, size):
        raise _wrong_size(size)
    settings = request.app.state.settings
    files = DatasetFiles(settings.data, dataset.id, dataset.extension)
    with files.receive(number) as part:
        await _receive(request, part, size, settings.limits)
        etag = await run_in_threadpool(part.finish)
    document = {"part_number": number, "etag": etag, "size": size}
    return JSONResponse(document, headers={"ETag": f'"{etag}"'})


async def _receive(request: Request, part: PartWriter, size: int, limits: Limits) -> None:
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
    if dataset is None or dataset.status != "uploading":
        raise upload_gone()
    return dataset


def _wrong_size(size: int) -> Refused:
    return Refused(400, "wrong_size", f"this part has {size:,} bytes", headers=CLOSE)


UPLOADS = [Route(f"{upload_urls.PATH}/{{id}}/{{number}}", upload, methods=["PUT"])]
