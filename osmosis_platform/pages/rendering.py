"""Pages: templates with everything escaped, and headers under which a page can only be itself."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..errors import Refused
from ..http.endpoints import base_url
from . import wording
from .static_files import static_url

_TEMPLATES = Environment(
    loader=PackageLoader("osmosis_platform.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(wording.FILTERS)
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
