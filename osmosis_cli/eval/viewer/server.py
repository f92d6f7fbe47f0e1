"""`osmosis eval view`: an HTTP server on loopback alone, for reports and what people say of them.

Every address begins with a token, which is printed where the server was started: other users of the
machine reach its loopback too, and conversations are for their owner. A request whose `Host` is
another name is refused, so that no page of the web reads any of this under a name that it chose;
a page of another site that makes the browser send something here is refused too.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click

from pytest_osmosis.reports.json_reader import UnreadableReport
from pytest_osmosis.reports.page_data import describe_run
from pytest_osmosis.reports.saved_conversations import beside as conversations_beside
from pytest_osmosis.run_result import RunId
from pytest_osmosis.storage import run_directory, run_labels
from pytest_osmosis.storage.journal import JournalError

from ...buffered_output import BufferedStreams
from ...errors import ENDS_BY_SIGNAL, CommandError
from ..lines import say
from ..report import readable
from .library import Library, ViewEntry
from .pages import NothingInCommon, comparison_page, entry_page, index_page

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

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Viewer(ThreadingHTTPServer):
    """The server; `closing` ends what is being watched."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, library: Library, place: Path, *, port: int = 0) -> None:
        """Listen on a port of the loopback; 0: one that is free. OSError where that fails."""
        self.closing = threading.Event()
        super().__init__((HOST, port), Handler)
        self.library = library
        self.place = place
        self.base = f"/{secrets.token_urlsafe(18)}"
        self.reading = threading.Lock()
        """Held while the library is read: it belongs to one thread at a time."""
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def url(self) -> str:
        """The address of the list, or of the one report."""
        root = f"http://{HOST}:{self.server_port}{self.base}/"
        only = self.library.only
        return root if only is None else f"{root}reports/{only.key}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a visitor who has left; anything else is a mistake of ours."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """End what is being watched, and stop listening."""
        self.closing.set()
        super().server_close()


class Handler(BaseHTTPRequestHandler):
    """One request: a page (GET), or what is said of an evaluation or deleted (POST)."""

    server: Viewer
    protocol_version = "HTTP/1.1"
    server_version = "osmosis"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Answer with a page, with JSON, or with events."""
        self._guarded(self._answer)

    def do_POST(self) -> None:
        """Keep what is said of an evaluation or a run, or delete an evaluation."""
        self._guarded(self._change)

    def _guarded(self, answer: Callable[[], None]) -> None:
        try:
            self._checked()
            answer()
        except PageRefused as refused:
            self._send(refused.status, f"{refused}\n".encode(), "text/plain")
        except (ConnectionError, TimeoutError):  # the visitor has left
            self.close_connection = True
        except (UnreadableReport, run_labels.UnreadableLabels, JournalError, OSError) as error:
            self._send(HTTPStatus.CONFLICT, f"{error}\n".encode(), "text/plain")
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            why = f"this page cannot be made: {type(error).__name__}: {error}\n"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, why.encode(), "text/plain")

    def _checked(self) -> None:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            raise PageRefused(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")

    def _asked(self) -> tuple[str, str, dict[str, str]]:
        """Return the kind and the key of what the address names, and its query."""
        asked = urlsplit(self.path)
        base, slash, rest = asked.path.removeprefix(self.server.base).partition("/")
        if not asked.path.startswith(self.server.base) or base or not slash:
            raise PageRefused(
                HTTPStatus.NOT_FOUND, "use the address that osmosis eval view printed"
            )
        kind, _, key = rest.partition("/")
        return kind, key, {name: values[-1] for name, values in parse_qs(asked.query).items()}

    def _answer(self) -> None:
        kind, key, query = self._asked()
        if kind == "events":
            with self.server.reading:
                entry = self._entry(key)
            self._events(entry)
            return
        with self.server.reading:
            text, content_type = self._page(kind, key, query)
        self._send(HTTPStatus.OK, text.encode("utf-8", "backslashreplace"), content_type)

    def _page(self, kind: str, key: str, query: dict[str, str]) -> tuple[str, str]:
        library, base = self.server.library, self.server.base
        if (kind, key) == ("", ""):
            return index_page(library, self.server.place, base, query.get("q", "")), "text/html"
        if (kind, key) == ("compare", ""):
            return self._comparison(query), "text/html"
        if kind in ("runs", "reports"):
            entry = self._entry(key)
            return entry_page(entry, library.view(entry), base), "text/html"
        if kind == "labels":
            runs = library.labels(self._entry(key)).to_json()["runs"]
            return json.dumps(runs), "application/json"
        if kind == "conversations":
            return json.dumps(self._conversation(self._entry(key), query)), "application/json"
        raise PageRefused(HTTPStatus.NOT_FOUND, "there is no such page")

    def _change(self) -> None:
        kind, key, _ = self._asked()
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise PageRefused(HTTPStatus.FORBIDDEN, "only this server's own pages may change it")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_SENT:
            raise PageRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too much, or of no known size")
        body = self.rfile.read(int(length)).decode("utf-8", "replace")
        with self.server.reading:
            entry = self.server.library.whole(self._entry(key))
            if kind == "labels":
                self._keep_label(entry, body)
                self._send(HTTPStatus.OK, b"{}", "application/json")
                return
            if kind == "notes":
                sent = {name: each[-1] for name, each in parse_qs(body).items()}
                tags = dict.fromkeys(sent.get("tags", "").replace(",", " ").split())
                note = sent.get("note", "")[: run_labels.TEXT_LIMIT]
                run_labels.change_labels(
                    entry.path, lambda now: run_labels.Labels(note, tuple(tags), now.runs)
                )
            elif kind == "delete":
                self._delete(entry)
            else:
                raise PageRefused(HTTPStatus.NOT_FOUND, "there is no such page")
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"{self.server.base}/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _keep_label(self, entry: ViewEntry, body: str) -> None:
        try:
            sent = json.loads(body)
            run = RunId(str(sent["suite"]), int(sent["row_index"]), int(sent["run_index"]))
            is_right, began = sent["is_right"], sent.get("started_at")
            if is_right not in (True, False, None) or not isinstance(began, float | int | None):
                raise ValueError("is_right is true, false or null, started_at a number")
            label = run_labels.RunLabel(
                is_right, str(sent.get("note", ""))[: run_labels.TEXT_LIMIT], began
            )
        except (ValueError, LookupError, TypeError) as error:
            raise PageRefused(HTTPStatus.BAD_REQUEST, f"no label of a run: {error}") from None
        run_labels.change_labels(entry.path, lambda now: now.with_run(run, label))

    def _delete(self, entry: ViewEntry) -> None:
        """Delete a kept evaluation and its report, or a report; labels and conversations too."""
        if entry.is_live:
            raise PageRefused(HTTPStatus.CONFLICT, f"{entry.run.name} is in use by a session")
        if entry.report is not None:
            self._delete(entry.report)
        if entry.kind == "run":
            run_directory.remove(entry.path)
        else:
            entry.path.unlink()
            conversations_beside(entry.path).unlink(missing_ok=True)
            run_labels.labels_file(entry.path).unlink(missing_ok=True)

    def _entry(self, key: str) -> ViewEntry:
        entry = self.server.library.get(key)
        if entry is None:
            raise PageRefused(HTTPStatus.NOT_FOUND, "there is no such evaluation any more")
        return entry

    def _comparison(self, query: dict[str, str]) -> str:
        if not {"a", "b"} <= query.keys():
            raise PageRefused(
                HTTPStatus.BAD_REQUEST, "choose two evaluations on the list of reports"
            )
        before, after = (self._entry(query[name]) for name in "ab")
        try:
            return comparison_page(self.server.library, before, after, self.server.base)
        except NothingInCommon:
            raise PageRefused(
                HTTPStatus.CONFLICT,
                f"{before.run.name} and {after.run.name} have no evaluation in common",
            ) from None

    def _conversation(self, entry: ViewEntry, query: dict[str, str]) -> dict[str, Any] | None:
        try:
            wanted = RunId(query["suite"], int(query["row"]), int(query["run"]))
        except (KeyError, ValueError):
            raise PageRefused(
                HTTPStatus.BAD_REQUEST, "name the suite, the row and the run"
            ) from None
        viewed = self.server.library.view(entry)
        record = viewed.conversations(wanted)
        return None if record is None else describe_run(record)

    def _events(self, entry: ViewEntry) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in watch(entry, self.server.closing.wait):
            self.wfile.write(event)
            self.wfile.flush()

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{content_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Send the headers of every answer as well."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the address of a request has the token in it."""


def watch(entry: ViewEntry, wait: Callable[[float], bool]) -> Iterator[bytes]:
    """Yield an event whenever the journal has grown, and one when the session is over.

    `wait` returns True where nothing more is to be watched.
    """
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
        if wait(POLL_S):
            return


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
        reason = error.strerror or error
        raise CommandError(f"cannot listen on port {port}: {reason}", code="port") from None
    ctx.meta[ENDS_BY_SIGNAL] = True
    with viewer:
        if as_json:
            click.echo(json.dumps({"url": viewer.url, "pages": len(library.entries())}))
            if streams := ctx.find_object(BufferedStreams):
                streams.release()
        else:
            say(f"{viewer.place}: {viewer.url}")
            say("Ctrl-C ends it")
        viewer.serve_forever()
