"""The request of a workspace's page: who is logged in, where, and in which transaction.

Another workspace than the visitor's is answered as one that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..accounts import browsers, registry
from ..accounts.roles import OWNER
from ..accounts.tokens import CallerWorkspace, find_workspace
from ..database.connection import Database
from ..database.models import User, Workspace
from ..errors import Refused
from ..http.endpoints import base_url
from ..settings import Settings
from ..vault.cipher import Vault
from .forms import SESSION_COOKIE, read_form, session_cookie, token_field
from .rendering import ElsewhereFirst, Page, render

_DONE: Mapping[str, str] = {
    "saved": "Saved.",
    "deleted": "Deleted.",
    "submitted": "Submitted again, with the newest dataset of its name.",
    "stopped": "The run was stopped. What was finished is kept.",
    "revoked": "The token was revoked. It works nowhere any more.",
    "removed": "The member was removed. Their tokens for this workspace no longer work.",
}
"""What a page says after a form was taken: the query of its address names the sentence."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """One request for a page of a workspace."""

    request: Request
    session: Session
    user: User
    workspace: CallerWorkspace
    problem: str = ""
    """Why the form of this page was refused, if it was."""
    status: int = 200

    @property
    def vault(self) -> Vault:
        """What encrypts and signs."""
        found: Vault = self.request.app.state.vault
        return found

    @property
    def settings(self) -> Settings:
        """What the operator has set."""
        found: Settings = self.request.app.state.settings
        return found

    @property
    def base_url(self) -> str:
        """Where users reach the platform."""
        return base_url(self.request)

    @property
    def is_owner(self) -> bool:
        """Whether the visitor may change members."""
        return self.workspace.role == OWNER

    def path(self, *segments: str) -> str:
        """Return the path of a page of the workspace."""
        return "/".join(
            ["/w", *(quote(part, safe="") for part in (self.workspace.name, *segments))]
        )

    def query(self, name: str) -> str:
        """Return a value of the address, empty without one."""
        return self.request.query_params.get(name, "")[:512]

    def whole(self, name: str) -> int:
        """Return a whole number of the address, 0 without one."""
        text = self.query(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    def show(self, template: str, **values: Any) -> HTMLResponse:
        """Return a page."""
        mine = registry.workspaces_of(self.session, self.user.id)
        return render(
            template,
            status=self.status,
            workspaces=[each for each, _ in mine],
            problem=self.problem,
            done=_DONE.get(self.query("done"), ""),
            visit=self,
            user=self.user,
            workspace=self.workspace,
            token_field=token_field(self.request),
            **values,
        )


Shows = Callable[[PageContext], Response]
Does = Callable[[PageContext, Mapping[str, str]], Response]


def shown_by(handler: Shows) -> Page:
    """Return the endpoint of a page that only looks."""

    async def respond(request: Request) -> Response:
        return await run_in_threadpool(look, request, handler)

    return respond


def done_by(handler: Does, shows: Shows, *, viewers_may: bool = False) -> Page:
    """Return the endpoint of a form; one that is refused is shown again with the reason."""

    async def respond(request: Request) -> Response:
        try:
            fields = await read_form(request, SESSION_COOKIE)
        except Refused as error:
            if error.status != 413:
                raise
            return await run_in_threadpool(look, request, shows, error)
        return await run_in_threadpool(_take, request, fields)

    def _take(request: Request, fields: Mapping[str, str]) -> Response:
        try:
            with database_of(request).writing() as session:
                context = context_of(request, session)
                if not viewers_may and not context.workspace.may_write:
                    where = f"the workspace {context.workspace.name}"
                    message = f"your role in {where} is viewer: you can only look"
                    raise Refused(403, "forbidden", message)
                return handler(context, fields)
        except Refused as error:
            if error.status not in (409, 422):
                raise
            return look(request, shows, error)

    return respond


def look(request: Request, handler: Shows, refused: Refused | None = None) -> Response:
    """Return what a page that only looks makes of a request."""
    with database_of(request).reading() as session:
        return handler(context_of(request, session, refused))


def context_of(request: Request, session: Session, refused: Refused | None = None) -> PageContext:
    """Return who visits which workspace; refuse a workspace that is not the visitor's."""
    user = logged_in_user(request, session)
    name = request.path_params["workspace"]
    workspace = find_workspace(session, user.id, Workspace.name == name)
    if workspace is None:
        raise Refused(404, "not_found", "you have no workspace of this name")
    if refused is None:
        return PageContext(request, session, user, workspace)
    return PageContext(request, session, user, workspace, refused.message, refused.status)


def logged_in_user(request: Request, session: Session) -> User:
    """Return who is logged in; without anybody, lead the browser to the login first."""
    user = browsers.find_user(session, session_cookie(request))
    if user is None and request.method == "POST":
        raise Refused(403, "logged_out", "your login has ended; open the page again")
    if user is None:
        raise ElsewhereFirst(_login_path(request))
    return user


def _login_path(request: Request) -> str:
    """Return the path of the login, which leads back to the page that was asked for."""
    if request.url.path == "/":
        return "/login"
    there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"/login?next={quote(there, safe='')}"


def database_of(request: Request) -> Database:
    """Return what a request's transaction is opened in."""
    found: Database = request.app.state.database
    return found
