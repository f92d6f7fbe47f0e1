"""Pages: templates with everything escaped, and headers under which a page can only be itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..errors import Refused
from ..http.endpoints import base_url

_TEMPLATES = Environment(
    loader=PackageLoader("osmosis_platform.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
STYLE = (files(__package__) / "templates" / "page.css").read_text("utf-8")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    # Under `no-referrer` browsers send forms without their origin.
    "Referrer-Policy": "same-origin",
}

Page = Callable[[Request], Awaitable[Response]]


def render(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page."""
    text = _TEMPLATES.get_template(template).render(**values)
    return HTMLResponse(text, status_code=status, headers=_HEADERS)


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
        except Refused as error:
            shown = render(
                "message.html",
                status=error.status,
                title="This did not work",
                message=error.message,
            )
            shown.headers.update(error.headers or {})
            return shown

    return answer


async def home(request: Request) -> Response:
    """Lead a browser that comes without a path to the page for devices."""
    return go_to("/device")


async def style(request: Request) -> Response:
    """Answer with the style sheet."""
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})
