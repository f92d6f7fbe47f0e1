"""The first page: the workspaces of a user, or at once the only one."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..accounts import registry
from .forms import form_token, session_cookie
from .rendering import go_to, render
from .visits import Visit, database_of, visitor


async def home(request: Request) -> Response:
    """Show them."""
    return await run_in_threadpool(_home, request)


def enter(visit: Visit) -> Response:
    """Lead from a workspace to its runs."""
    return go_to(visit.path("runs"))


def _home(request: Request) -> Response:
    with database_of(request).reading() as session:
        user = visitor(request, session)
        mine = registry.workspaces_of(session, user.id)
    if len(mine) == 1:
        return go_to(f"/w/{mine[0][0].name}/runs")
    token = form_token(request.app.state.vault, session_cookie(request))
    return render("home.html", user=user, token=token, workspaces=mine)
