"""Log in by name and password, log out; the first page: the workspaces of a user."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import quote

import anyio
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..accounts import attempts, browsers, registry
from ..accounts.passwords import MAX_BYTES, matches
from ..accounts.registry import is_name
from ..database.connection import Database
from ..database.models import User
from ..identifiers import new_token
from .context import PageContext, database_of, logged_in_user
from .forms import LOGIN_COOKIE, SESSION_COOKIE, read_form, token_field
from .rendering import go_to, render, set_cookie

_FORM_AGE_S = 3600
_IS_OURS = re.compile(r"/(w/|device)[\w/.~%?=&+-]{0,500}", re.ASCII)
"""A page that a login may lead to; none of another site."""
_AT_ONCE = 2
"""Passwords that are checked at once: each takes memory and a processor."""


async def show_login(request: Request) -> Response:
    """Show the form."""
    query = request.query_params
    return _form(request, code=query.get("code", ""), onward=query.get("next", ""))


async def log_in(request: Request) -> Response:
    """Check the form, and continue to the device that waits."""
    fields = await read_form(request, LOGIN_COOKIE)
    name, password = fields.get("name", ""), fields.get("password", "")
    code, onward = fields.get("code", ""), fields.get("next", "")
    user, is_right = None, False
    if is_name(name) and len(password.encode("utf-8", "replace")) <= MAX_BYTES:
        user = await run_in_threadpool(_begin, request, name)
        check = partial(matches, password, None if user is None else user.password_hash)
        is_right = await anyio.to_thread.run_sync(check, limiter=_limiter(request))
    if not is_right or user is None:
        message = "The name or the password is wrong."
        return _form(request, code=code, onward=onward, name=name, message=message, status=403)
    age_s = request.app.state.settings.limits.session_expires_s
    cookie = await run_in_threadpool(_start, request, user)
    response = go_to(_page_after(code, onward))
    set_cookie(request, response, SESSION_COOKIE, cookie, age_s)
    response.delete_cookie(LOGIN_COOKIE, path="/", httponly=True, samesite="strict")
    return response


async def log_out(request: Request) -> Response:
    """End the browser's session."""
    await read_form(request, SESSION_COOKIE)
    await run_in_threadpool(_end, database_of(request), request.cookies[SESSION_COOKIE])
    response = go_to("/login")
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")
    return response


def _limiter(request: Request) -> anyio.CapacityLimiter:
    """Return what bounds how many passwords are checked at once; made in the event loop."""
    state = request.app.state
    if not hasattr(state, "password_limiter"):
        state.password_limiter = anyio.CapacityLimiter(_AT_ONCE)
    found: anyio.CapacityLimiter = state.password_limiter
    return found


def _form(
    request: Request,
    *,
    code: str,
    onward: str = "",
    name: str = "",
    message: str = "",
    status: int = 200,
) -> Response:
    cookie = request.cookies.get(LOGIN_COOKIE) or new_token()
    response = render(
        "login.html",
        status=status,
        token_field=token_field(request, cookie),
        code=code[:32],
        onward=onward if _IS_OURS.fullmatch(onward) else "",
        name=name[:64],
        message=message,
    )
    set_cookie(request, response, LOGIN_COOKIE, cookie, _FORM_AGE_S)
    return response


def _page_after(code: str, onward: str) -> str:
    if code:
        return f"/device?code={quote(code, safe='')}"
    return onward if _IS_OURS.fullmatch(onward) else "/"


def _begin(request: Request, name: str) -> User | None:
    """Count an attempt, and return whose it is."""
    state = request.app.state
    with database_of(request).writing() as session:
        key = attempts.key_of(name, state.vault.sign)
        attempts.count(session, key, state.settings.limits.failed_logins)
        return session.scalar(select(User).where(User.name == name))


def _start(request: Request, user: User) -> str:
    state = request.app.state
    with database_of(request).writing() as session:
        attempts.take_back(session, attempts.key_of(user.name, state.vault.sign))
        return browsers.start(session, user, state.settings.limits.session_expires_s)


def _end(database: Database, cookie: str) -> None:
    with database.writing() as session:
        browsers.end(session, cookie)


async def home(request: Request) -> Response:
    """Show them."""
    return await run_in_threadpool(_home, request)


def enter(context: PageContext) -> Response:
    """Lead from a workspace to its runs."""
    return go_to(context.path("runs"))


def _home(request: Request) -> Response:
    with database_of(request).reading() as session:
        user = logged_in_user(request, session)
        mine = registry.workspaces_of(session, user.id)
    if len(mine) == 1:
        return go_to(f"/w/{mine[0][0].name}/runs")
    return render("home.html", user=user, token_field=token_field(request), workspaces=mine)
