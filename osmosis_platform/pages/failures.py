"""What a browser is shown where no page answers: an unknown address, a failure of the platform."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from .rendering import render

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]
_FOR_PROGRAMS = ("/api/", "/uploads/")


def as_page(handler: ErrorHandler) -> ErrorHandler:
    """Return a handler that shows people as a page what it answers programs as JSON."""

    async def answer(request: Request, error: Exception) -> Response:
        response = await handler(request, error)
        if not _is_for_people(request):
            return response
        is_unknown = response.status_code == HTTPStatus.NOT_FOUND
        message = "Nothing is at this address." if is_unknown else _message(response)
        title = "There is no such page" if is_unknown else "This did not work"
        page = render("message.html", status=response.status_code, title=title, message=message)
        for name, value in response.headers.items():
            page.headers.setdefault(name, value)
        return page

    return answer


def _is_for_people(request: Request) -> bool:
    is_page = not request.url.path.startswith(_FOR_PROGRAMS)
    return is_page and "text/html" in request.headers.get("accept", "")


def _message(response: Response) -> str:
    found: str = json.loads(bytes(response.body))["error"]
    return found
