"""Pages: templates with everything escaped, how they say times, numbers and figures, and headers.

Under these headers a page can only be itself.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..errors import Refused
from ..http.endpoints import base_url
from ..identifiers import timestamp
from .static_files import static_url

_UNITS = ("bytes", "KiB", "MiB", "GiB")
NONE = "–"


def when(moment: datetime | None) -> str:
    """Return a time for people, in UTC, with its exact form for programs."""
    if moment is None:
        return NONE
    utc = moment.astimezone(timezone.utc)
    shown = f"{utc.day} {utc:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(timestamp(moment), shown)


def duration(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None:
        return NONE
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def size(count: int) -> str:
    """Return a number of bytes in the unit that fits."""
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{count:,} {_UNITS[0]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def number(value: float | None) -> str:
    """Return a count with separators, or a figure in three digits."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Return a share as a percentage."""
    return NONE if value is None else f"{100 * value:.1f}%"


def visible(text: Any) -> str:
    """Return text with its control characters made visible; line ends stay."""
    found = str(text)
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in found
    )


def sentence(text: str) -> str:
    """Return a message of the API as a sentence."""
    shown = visible(text)
    end = "" if shown[-1:] in ".!?" else "."
    return shown[:1].upper() + shown[1:] + end


_TEMPLATES = Environment(
    loader=PackageLoader("osmosis_platform.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(
    {each.__name__: each for each in (when, duration, size, number, percent, visible, sentence)}
)
_TEMPLATES.globals["static_url"] = static_url
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    # Under `no-referrer` browsers send forms without their origin.
    "Referrer-Policy": "same-origin",
}

Page = Callable[[Request], Awaitable[Response]]
ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]
_FOR_PEOPLE = ("/w/", "/login", "/logout", "/device")
_FOR_PROGRAMS = ("/api/", "/uploads/")


class ElsewhereFirst(Exception):
    """A browser that has to go to another page first."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def render(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page."""
    content = _TEMPLATES.get_template(template).render(**values)
    return HTMLResponse(content, status_code=status, headers=_HEADERS)


def go_to(path: str) -> RedirectResponse:
    """Return the answer that leads a browser to another page of ours."""
    return RedirectResponse(path, status_code=303, headers=_HEADERS)


def set_cookie(request: Request, response: Response, name: str, value: str, age_s: int) -> None:
    """Set a cookie that no script reads and no other site sends."""
    response.set_cookie(
        name,
        value,
        max_age=age_s,
        path="/",
        httponly=True,
        samesite="strict",
        secure=base_url(request).startswith("https:"),
    )


async def on_elsewhere(request: Request, error: Exception) -> Response:
    """Lead a browser to the page that comes first."""
    assert isinstance(error, ElsewhereFirst)
    if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
        # Browsers send no strict cookie along a link of another site: once more, from here.
        return render("onward.html")
    return go_to(error.path)


def as_page(handler: ErrorHandler) -> ErrorHandler:
    """Return a handler that shows people as a page what it answers programs as JSON."""

    async def answer(request: Request, error: Exception) -> Response:
        response = await handler(request, error)
        if not _is_for_people(request, error):
            return response
        is_unknown = response.status_code == HTTPStatus.NOT_FOUND
        message = json.loads(bytes(response.body))["error"]
        if is_unknown and isinstance(error, HTTPException):
            message = "Nothing is at this address."
        title = "There is no such page" if is_unknown else "This did not work"
        shown = render("message.html", status=response.status_code, title=title, message=message)
        for name, value in response.headers.items():
            shown.headers.setdefault(name, value)
        return shown

    return answer


def _is_for_people(request: Request, error: Exception) -> bool:
    path = request.url.path
    if isinstance(error, Refused) and (path == "/" or path.startswith(_FOR_PEOPLE)):
        return True  # one of our pages has refused it
    return not path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")
