"""`osmosis eval view`: an HTTP server on loopback alone, for reports and what people say of them.

Every address begins with a token, which is printed where the server was started: other users of the
machine reach its loopback too, and conversations are for their owner. A request whose `Host` is
another name is refused, so that no page of the web reads any of this under a name that it chose;
a page of another site that makes the browser send something here is refused too.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import click

from osmosis_ai.http_server import Response, ThreadedServer
from pytest_osmosis.features.html.page_data import describe_run
from pytest_osmosis.features.labels import run_labels
from pytest_osmosis.reports.json_reader import UnreadableReport
from pytest_osmosis.reports.saved_conversations import beside as conversations_beside
from pytest_osmosis.run_result import RunId, RunResult
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.replay import JournalError

from ...buffered_output import BufferedStreams
from ...errors import ENDS_BY_SIGNAL, CommandError
from ...shared_options import print_json
from ..lines import say
from ..report import readable
from .library import Library, ViewEntry
from .pages import NothingInCommon, comparison_page, entry_page, index_page

if TYPE_CHECKING:
    from aiohttp import web

T = TypeVar("T")
HOST = "127.0.0.1"
POLL_S = 0.5
"""How often a journal is looked at while it is watched."""
MOST_SENT = 64_000
"""Bytes of what a page may send."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "osmosis",
    "X-Content-Type-Options": "nosniff",
}


EPILOG = """\b
Examples:
  osmosis eval view
  osmosis eval view results.json
  osmosis eval view reports/ --port 8080
"""


class PageRefused(Exception):
    """A request that gets no page; `str()` says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Viewer:
    """Serves a library from its creation on; a context manager, which ends that."""

    def __init__(self, library: Library, place: Path, *, port: int = 0) -> None:
        """Listen on a port of the loopback; 0: one that is free. OSError where that fails."""
        self.library = library
        self.place = place
        self.base = f"/{secrets.token_urlsafe(18)}"
        self._reader = ThreadPoolExecutor(1)
        """The thread that reads the library, which belongs to one at a time."""
        self._server = ThreadedServer(
            self._answer, name="osmosis-viewer", host=HOST, port=port, max_body=MOST_SENT
        )
        self.port = urlsplit(self._server.url).port

    @property
    def url(self) -> str:
        """The address of the list, or of the one report."""
        root = f"{self._server.url}{self.base}/"
        only = self.library.only
        return root if only is None else f"{root}reports/{only.key}"

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._reader.shutdown()

    def wait(self) -> None:
        """Wait for a signal, whose handler raises."""
        threading.Event().wait()

    async def _in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, work, *arguments)

    async def _answer(self, request: web.BaseRequest) -> Response | web.StreamResponse:
        """Answer with a page, with JSON or with events; keep what is sent."""
        try:
            kind, key = self._checked(request)
            if request.method == "POST":
                return await self._in_turn(self._change, kind, key, await request.read())
            if kind == "events":
                entry = await self._in_turn(self._entry, key)
                return await _send_events(request, entry)
            return await self._in_turn(self._page, kind, key, dict(request.query.items()))
        except PageRefused as refused:
            return _plain(refused.status, str(refused))
        except (UnreadableReport, run_labels.UnreadableLabels, JournalError, OSError) as error:
            return _plain(409, str(error))
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            why = f"this page cannot be made: {type(error).__name__}: {error}"
            return _plain(500, why)

    def _checked(self, request: web.BaseRequest) -> tuple[str, str]:
        """Return the kind and the key of what the address names."""
        if request.host.lower() not in {f"{name}:{self.port}" for name in (HOST, "localhost")}:
            raise PageRefused(421, "this server has another name")
        if request.method not in ("GET", "POST"):
            raise PageRefused(501, "this server has pages and forms alone")
        base, slash, rest = request.path.removeprefix(self.base).partition("/")
        if not request.path.startswith(self.base) or base or not slash:
            raise PageRefused(404, "use the address that osmosis eval view printed")
        if request.method == "POST":
            if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
                raise PageRefused(403, "only this server's own pages may change it")
            length = request.content_length
            if length is None or length > MOST_SENT:
                raise PageRefused(413, "too much, or of no known size")
        kind, _, key = rest.partition("/")
        return kind, key

    def _page(self, kind: str, key: str, query: Mapping[str, str]) -> Response:
        library, base = self.library, self.base
        if (kind, key) == ("", ""):
            return _html(index_page(library, self.place, base, query.get("q", "")))
        if (kind, key) == ("compare", ""):
            return _html(self._comparison(query))
        if kind in ("runs", "reports"):
            entry = self._entry(key)
            return _html(entry_page(entry, library.view(entry), base))
        if kind == "labels":
            return _json(library.labels(self._entry(key)).to_json()["runs"])
        if kind == "conversations":
            return _json(self._conversation(self._entry(key), query))
        raise PageRefused(404, "there is no such page")

    def _change(self, kind: str, key: str, sent: bytes) -> Response:
        """Keep what is said of an evaluation or a run, or delete an evaluation."""
        entry, body = self.library.whole(self._entry(key)), sent.decode("utf-8", "replace")
        if kind == "labels":
            _keep_label(entry, body, self.library.view(entry).result.runs)
            return _json({})
        if kind == "notes":
            _keep_note(entry, body)
        elif kind == "delete":
            _delete(entry)
        else:
            raise PageRefused(404, "there is no such page")
        return _response(303, "", "text/plain", Location=f"{self.base}/")

    def _entry(self, key: str) -> ViewEntry:
        entry = self.library.get(key)
        if entry is None:
            raise PageRefused(404, "there is no such evaluation any more")
        return entry

    def _comparison(self, query: Mapping[str, str]) -> str:
        if not {"a", "b"} <= query.keys():
            raise PageRefused(400, "choose two evaluations on the list of reports")
        before, after = (self._entry(query[name]) for name in "ab")
        try:
            return comparison_page(self.library, before, after, self.base)
        except NothingInCommon:
            raise PageRefused(
                409,
                f"{before.run.name} and {after.run.name} have no evaluation in common",
            ) from None

    def _conversation(self, entry: ViewEntry, query: Mapping[str, str]) -> dict[str, Any] | None:
        try:
            wanted = RunId(query["suite"], int(query["row"]), int(query["run"]))
        except (KeyError, ValueError):
            raise PageRefused(400, "name the suite, the row and the run") from None
        record = self.library.view(entry).conversations(wanted)
        return None if record is None else describe_run(record)


async def _send_events(request: web.BaseRequest, entry: ViewEntry) -> web.StreamResponse:
    from aiohttp import web

    answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
    answer.force_close()
    with suppress(ConnectionError):  # the visitor has left
        await answer.prepare(request)
        async for event in watch(entry):
            await answer.write(event)
    return answer


def _response(status: int, text: str, content_type: str, **headers: str) -> Response:
    body = text.encode("utf-8", "backslashreplace")
    kind = f"{content_type}; charset=utf-8"
    return Response(status, body, {**_HEADERS, **headers}, content_type=kind)


def _html(text: str) -> Response:
    return _response(200, text, "text/html")


def _json(document: Any) -> Response:
    return _response(200, json.dumps(document), "application/json")


def _plain(status: int, sentence: str) -> Response:
    return _response(status, f"{sentence}\n", "text/plain")


def _keep_label(entry: ViewEntry, body: str, runs: Iterable[RunResult]) -> None:
    """Keep what is said of a run, with the rubrics by which judges have judged it."""
    try:
        sent = json.loads(body)
        run = RunId(str(sent["suite"]), int(sent["row_index"]), int(sent["run_index"]))
        is_right, began = sent["is_right"], sent.get("started_at")
        if is_right not in (True, False, None) or not isinstance(began, float | int | None):
            raise ValueError("is_right is true, false or null, started_at a number")
        note = str(sent.get("note", ""))[: run_labels.TEXT_LIMIT]
        rubrics = next((each.rubrics for each in runs if each.run_id == run), {})
        label = run_labels.RunLabel(is_right, note, began, rubrics)
    except (ValueError, LookupError, TypeError) as error:
        raise PageRefused(400, f"no label of a run: {error}") from None
    run_labels.change_labels(entry.path, lambda now: now.with_run(run, label))


def _keep_note(entry: ViewEntry, body: str) -> None:
    sent = {name: values[-1] for name, values in parse_qs(body).items()}
    tags = dict.fromkeys(sent.get("tags", "").replace(",", " ").split())
    note = sent.get("note", "")[: run_labels.TEXT_LIMIT]
    run_labels.change_labels(entry.path, lambda now: run_labels.Labels(note, tuple(tags), now.runs))


def _delete(entry: ViewEntry) -> None:
    """Delete a kept evaluation and its report, or a report; labels and conversations too."""
    if entry.is_live:
        raise PageRefused(409, f"{entry.run.name} is in use by a session")
    if entry.report is not None:
        _delete(entry.report)
    if entry.kind == "run":
        run_directory.remove(entry.path)
    else:
        entry.path.unlink()
        conversations_beside(entry.path).unlink(missing_ok=True)
        run_labels.labels_file(entry.path).unlink(missing_ok=True)


async def watch(entry: ViewEntry) -> AsyncIterator[bytes]:
    """Yield an event whenever the journal has grown, and one when the session is over."""
    size = -1
    yield b"retry: 2000\n\n"
    while True:
        is_live = entry.is_live
        _, now = entry.stamp
        if now != size:
            size = now
            yield b"event: changed\ndata: %d\n\n" % now
        if not is_live:
            yield b"event: ended\ndata: %d\n\n" % now
            return
        yield b": still there\n\n"
        await asyncio.sleep(POLL_S)


@click.command("view", epilog=EPILOG)
@click.argument("place", metavar="[DIR|FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port to listen on (default: one that is free).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON document.")
@click.pass_context
def view_command(ctx: click.Context, place: Path | None, port: int, as_json: bool) -> None:
    """Show reports and kept evaluations in a browser, live while a session runs.

    DIR is a project, a folder of JSON reports or one of kept evaluations (default: the project
    here); FILE is one JSON report. The pages are served on 127.0.0.1 alone, under an address that
    cannot be guessed, until Ctrl-C.
    """
    with readable():
        library = Library(place)
    try:
        viewer = Viewer(library, (place or Path.cwd()).absolute(), port=port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise CommandError(f"cannot listen on port {port}: {reason}", code="port") from None
    ctx.meta[ENDS_BY_SIGNAL] = True
    with viewer:
        if as_json:
            print_json({"url": viewer.url, "pages": len(library.entries())})
            if streams := ctx.find_object(BufferedStreams):
                streams.release()
        else:
            say(f"{viewer.place}: {viewer.url}")
            say("Ctrl-C ends it")
        viewer.wait()
