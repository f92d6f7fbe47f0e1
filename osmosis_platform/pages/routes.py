"""Every page."""

from __future__ import annotations

from starlette.routing import Route

from . import home, report_page, run_list, run_page
from .device import decide, show_device
from .live import streamed_by
from .login import log_in, log_out, show_login
from .rendering import Page, page
from .static_files import STATIC
from .visits import done_by, shown_by

_ALL = "/w/{workspace}"
_RUNS = f"{_ALL}/runs"
_RUN = f"{_RUNS}/{{name}}"


def _get(path: str, respond: Page) -> Route:
    return Route(path, respond, methods=["GET"])


def _post(path: str, respond: Page) -> Route:
    return Route(path, respond, methods=["POST"])


PAGES = [
    _get("/", page(home.home)),
    _get("/login", page(show_login)),
    _post("/login", page(log_in)),
    _post("/logout", page(log_out)),
    _get("/device", page(show_device)),
    _post("/device", page(decide)),
    *STATIC,
    _get(_ALL, shown_by(home.enter)),
    _get(_RUNS, shown_by(run_list.show_runs)),
    _get(f"{_RUNS}/events", streamed_by(run_list.live_runs)),
    _get(_RUN, shown_by(run_page.show_run)),
    _get(f"{_RUN}/events", streamed_by(run_page.live_run)),
    _post(f"{_RUN}/stop", done_by(run_page.stop_run, run_page.show_run)),
    _get(f"{_RUN}/report", shown_by(report_page.show_report)),
    _get(f"{_RUN}/report.html", shown_by(report_page.download_html)),
    _get(f"{_RUN}/report.json", shown_by(run_page.download_report)),
    _get(f"{_RUN}/log.txt", shown_by(run_page.download_log)),
]
