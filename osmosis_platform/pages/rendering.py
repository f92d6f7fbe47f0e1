"""Pages: templates with everything escaped, and headers under which a page can only be itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
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
    "img-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    # Under `no-referrer` browsers send forms without their origin.
    "Referrer-Policy": "same-origin",
}

Page = Callable[[Request], Awaitable[Response]]


class ElsewhereFirst(Exception):
    """A browser that has to go to another page first."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def text_of(template: str, **values: Any) -> str:
    """Return what a template makes of values."""
    return _TEMPLATES.get_template(template).render(**values)


def render(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(text_of(template, **values), status_code=status, headers=_HEADERS)


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


def page(respond: Page) -> Page:
    """Show what the page refuses as a page."""

    async def answer(request: Request) -> Response:
        try:
            return await respond(request)
        except ElsewhereFirst as error:
            if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
                # Browsers send no strict cookie along a link of another site: once more, from here.
                return render("onward.html")
            return go_to(error.path)
        except Refused as error:
            shown = render(
                "message.html",
                status=error.status,
                title="There is no such page" if error.status == 404 else "This did not work",
                message=error.message,
            )
            shown.headers.update(error.headers or {})
            return shown

    return answer
