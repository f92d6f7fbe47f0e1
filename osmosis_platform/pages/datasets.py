"""The datasets of a workspace, and uploading one by a form."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import anyio
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pytest_osmosis.dataset.formats import SUFFIXES, SUFFIXES_SHOWN

from ..database.connection import Database
from ..database.models import Dataset, Run
from ..datasets import records
from ..datasets.completion import complete
from ..datasets.files import DatasetFiles
from ..errors import Refused
from ..execution import deletion
from ..http.bodies import CLOSE, content_length
from ..http.validation import check_size, checked_extension, is_file_name
from ..settings import Settings
from .context import PageContext, check_may_write, context_of, database_of, look
from .forms import SESSION_COOKIE, check_origin, check_token
from .rendering import go_to, page

PAGE = 50
_ROOM = 64 * 1024
"""In a form, for what is not the file."""
_BLOCK = 1024 * 1024
_BEGINNING = 256 * 1024
"""Bytes of a file that are looked at for a preview."""
_PREVIEWED = 20


def show_datasets(context: PageContext) -> Response:
    """Show them."""
    offset = context.whole("offset")
    limits = context.settings.limits
    found, total = records.newest(context.session, context.workspace.id, limit=PAGE, offset=offset)
    return context.show(
        "datasets.html",
        active="datasets",
        datasets=found,
        total=total,
        offset=offset,
        page_size=PAGE,
        suffixes=SUFFIXES,
        suffixes_shown=SUFFIXES_SHOWN,
        largest=min(limits.simple_upload_bytes, limits.dataset_bytes),
    )


def show_dataset(context: PageContext) -> Response:
    """Show the first rows of one, and the runs that used it."""
    dataset = records.find(context.session, context.workspace.id, context.request.path_params["id"])
    query = select(Run.name).where(Run.dataset_id == dataset.id).order_by(Run.created_at.desc())
    return context.show(
        "dataset.html",
        active="datasets",
        dataset=dataset,
        rows=_first_rows(DatasetFiles(context.settings.data, dataset.id, dataset.extension).rows),
        runs=context.session.scalars(query.limit(PAGE)).all(),
    )


def _first_rows(path: Path) -> list[dict[str, Any]]:
    """Return rows that the beginning of a file has whole; none of a file that is not lines."""
    if not path.exists() or path.suffix not in (".csv", ".jsonl"):
        return []
    with path.open("rb") as file:
        lines = file.read(_BEGINNING).decode("utf-8-sig", "replace").splitlines()
        whole = lines if not file.read(1) else lines[:-1]
    try:
        if path.suffix == ".csv":
            return [*islice(csv.DictReader(whole, restkey=""), _PREVIEWED)]
        rows = [json.loads(line) for line in whole[:_PREVIEWED] if line.strip()]
    except (ValueError, RecursionError, csv.Error):
        return []
    return [row for row in rows if isinstance(row, dict)]


def delete_dataset(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Delete one."""
    dataset = records.find(context.session, context.workspace.id, context.request.path_params["id"])
    deletion.delete_dataset(context.session, context.settings.data, dataset)
    return go_to(f"{context.path('datasets')}?done=deleted")


@page
async def upload(request: Request) -> Response:
    """Take a file."""
    check_origin(request)
    await run_in_threadpool(look, request, check_may_write)
    try:
        _check_length(request)
        async with _form(request) as form:
            name, file = _file(request, form)
            done = await run_in_threadpool(_store, request, name, file)
    except Refused as error:
        if error.status not in (409, 413, 422, 507):
            raise
        return await run_in_threadpool(look, request, show_datasets, error)
    return go_to(f"{request.url.path}?done={done}")


def _check_length(request: Request) -> None:
    limit = request.app.state.settings.limits.simple_upload_bytes
    length = content_length(request)
    if length is None:
        raise Refused(411, "length_required", "the form must say how long it is", headers=CLOSE)
    if length > limit + _ROOM:
        message = f"A form takes files of up to {limit:,} bytes; use `osmosis dataset upload`."
        raise Refused(413, "too_large", message, headers=CLOSE)


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    """Read a form; its file, a temporary one, is removed at the end."""
    try:
        with anyio.fail_after(request.app.state.settings.limits.form_upload_timeout_s):
            form = await request.form(max_files=1, max_fields=4, max_part_size=4096)
    except TimeoutError:
        raise Refused(408, "timeout", "the upload took too long", headers=CLOSE) from None
    except (HTTPException, UnicodeDecodeError):
        raise Refused(400, "invalid_form", "the form cannot be read", headers=CLOSE) from None
    try:
        yield form
    finally:
        await form.close()


def _file(request: Request, form: FormData) -> tuple[str, BinaryIO]:
    """Return the name and the content of the file in a form of ours."""
    token, file = form.get("token"), form.get("file")
    check_token(request, SESSION_COOKIE, token if isinstance(token, str) else "")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Refused(422, "invalid", "Choose a file.")
    return file.filename, file.file


def _store(request: Request, name: str, file: BinaryIO) -> str:
    """Keep the dataset; return what was done, as the page calls it."""
    settings: Settings = request.app.state.settings
    database = database_of(request)
    dataset = _record(request, settings, database, name, _size(file))
    files = DatasetFiles(settings.data, dataset.id, dataset.extension)
    files.make()
    with files.receive(1) as part:
        while block := file.read(_BLOCK):
            part.write(block)
        part.finish()
    complete(database, request.app.state.checks, files, dataset, {})
    with database.reading() as session:
        alike = records.ready_datasets(session, dataset.workspace_id, records.stem(dataset))
    return "replaced" if len(alike) > 1 else "uploaded"


def _record(
    request: Request, settings: Settings, database: Database, name: str, size: int
) -> Dataset:
    if not is_file_name(name):
        raise Refused(422, "invalid", "The file has a name that a dataset cannot have.")
    if not size:
        raise Refused(422, "invalid", "The file is empty.")
    check_size(size, settings.limits.dataset_bytes)
    extension = checked_extension(PurePath(name).suffix)
    with database.writing() as session:
        context = context_of(request, session)
        check_may_write(context)
        return records.create(
            session,
            context.workspace,
            creator_id=context.user.id,
            file_name=name,
            file_size=size,
            extension=extension,
            limits=settings.limits,
        )


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size
