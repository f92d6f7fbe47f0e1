"""The page on which a user confirms that a device may act in the user's name."""

from __future__ import annotations

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..accounts import browsers, grants, registry
from ..database.models import User
from ..errors import Refused
from .context import database_of
from .forms import SESSION_COOKIE, read_form, session_cookie, token_field
from .rendering import go_to, render

_UNKNOWN = "This code is unknown, used or has expired. Run `osmosis login` again for a new one."


async def show_device(request: Request) -> Response:
    """Show the device that waits for a decision, or a form for its code."""
    code = request.query_params.get("code", "")[:32]
    return await run_in_threadpool(_show, request, code)


async def decide(request: Request) -> Response:
    """Take the decision."""
    fields = await read_form(request, SESSION_COOKIE)
    return await run_in_threadpool(_decide, request, fields)


def _show(request: Request, code: str) -> Response:
    with database_of(request).reading() as session:
        user = browsers.find_user(session, session_cookie(request))
        if user is None:
            return go_to(f"/login?code={quote(code, safe='')}" if code else "/login")
        grant = grants.find_pending(session, code) if code else None
        workspaces = registry.workspaces_of(session, user.id)
    if grant is None:
        status, message = (404, _UNKNOWN) if code else (200, "")
        return _code_page(request, user, message, status)
    field = token_field(request)
    return render("device.html", token_field=field, user=user, grant=grant, workspaces=workspaces)


def _decide(request: Request, fields: dict[str, str]) -> Response:
    with database_of(request).writing() as session:
        user = browsers.find_user(session, session_cookie(request))
        if user is None:
            raise Refused(403, "logged_out", "your login has ended; open the page again")
        grant = grants.find_pending(session, fields.get("code", ""))
        if grant is None:
            return _code_page(request, user, _UNKNOWN, 404)
        if fields.get("decision") != "approve":
            grants.deny(grant)
            return _done("The device was refused", "It cannot act in your name.")
        wanted = fields.get("workspace", "")
        mine = [each for each, _ in registry.workspaces_of(session, user.id) if each.id == wanted]
        if not mine:
            raise Refused(403, "no_workspace", "choose a workspace of yours")
        grants.approve(grant, user.id, wanted)
    return _done(
        "You are logged in",
        f"The device {grant.device_name} can now act in your name in the workspace {mine[0].name}. "
        "You can close this page and go back to the terminal.",
    )


def _code_page(request: Request, user: User, message: str, status: int) -> Response:
    field = token_field(request)
    return render("code.html", status=status, token_field=field, user=user, message=message)


def _done(title: str, message: str) -> Response:
    return render("message.html", title=title, message=message)
