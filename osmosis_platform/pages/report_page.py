"""The HTML report of a run: a document of its own, in a sandbox without our origin.

What a model wrote is in it. Its scripts can read no cookie and no page of ours, and load nothing.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.responses import HTMLResponse, Response

from ..database.models import Run
from ..errors import Refused
from ..execution.outcome import open_conversations
from .context import PageContext
from .run_page import attachment, find_run, report_of

_KEPT = 4
_KEPT_BYTES = 16 * 1024 * 1024
_MOST_BYTES = 256 * 1024 * 1024
"""Of conversations that are looked through for a page."""


class Rendered:
    """The reports that were rendered last: a large one takes seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, str] = OrderedDict()

    def page(self, key: str, report: dict[str, Any], conversations: Callable[[], str]) -> str:
        """Return the page of a report, one at a time."""
        with self._lock:
            page = self._pages.pop(key, None) or _rendered(report, conversations())
            if len(page) <= _KEPT_BYTES:
                self._pages[key] = page
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
            return page


def show_report(context: PageContext) -> Response:
    """Show the report, for the frame in the page of its run, or by itself."""
    from pytest_osmosis.reports.page_assets import script, style

    policy = (
        f"sandbox allow-scripts; default-src 'none'; script-src {script().source}; "
        f"style-src {style().source}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    )
    headers = {"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
    return HTMLResponse(_page(context), headers=headers)


def download_html(context: PageContext) -> Response:
    """Answer with the report's page as a file."""
    _, run = find_run(context)
    return attachment(f"{run.name}.html", "text/html", _page(context).encode("utf-8", "replace"))


def _page(context: PageContext) -> str:
    _, run = find_run(context)
    rendered: Rendered = context.request.app.state.rendered
    return rendered.page(
        f"{run.id} {run.status}", report_of(run), lambda: _conversations(context, run)
    )


def _conversations(context: PageContext, run: Run) -> str:
    """Return what was said in the run, where this machine has it and it is not too much."""
    found = open_conversations(context.session, context.vault, context.settings.data, run)
    if found is None:
        return ""
    with found.file:
        return "" if found.size > _MOST_BYTES else b"".join(found.lines()).decode()


def _rendered(report: dict[str, Any], conversations: str) -> str:
    from pytest_osmosis.reports import html
    from pytest_osmosis.reports.json_reader import UnreadableReport
    from pytest_osmosis.reports.saved_conversations import beside
    from pytest_osmosis.reports.saved_report import read_saved

    with TemporaryDirectory(prefix="osmosis-report-") as folder:
        path = Path(folder) / "report.json"
        path.write_text(json.dumps(report), "utf-8")
        said = beside(path)
        said.write_text(conversations, "utf-8")
        try:
            try:
                saved = read_saved(path)
            except UnreadableReport:  # perhaps for what a program of the run wrote beside it
                said.unlink()
                saved = read_saved(path)
        except UnreadableReport:
            message = "the report is not one that this version reads"
            raise Refused(422, "unreadable_report", message) from None
        return html.render(saved.result, saved.sections, saved.conversations)
