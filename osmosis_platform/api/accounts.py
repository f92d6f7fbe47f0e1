"""What a token stands for, and its end."""

from __future__ import annotations

from typing import Any

from ..accounts.tokens import Caller, revoke
from ..database.models import Workspace
from ..errors import Refused
from ..http.endpoints import Answer, Call, Endpoint, Needs
from ..timestamps import timestamp


def who(caller: Caller) -> dict[str, Any]:
    """Return the user and the workspace that a token stands for."""
    user = {"id": caller.user_id, "email": caller.email, "name": caller.user_name}
    if caller.workspace is None:
        return {"user": user}
    workspace = {
        "id": caller.workspace.id,
        "name": caller.workspace.name,
        "role": caller.workspace.role,
    }
    return {"user": user, "workspace": workspace}


def _verify(call: Call[None, None]) -> Answer:
    caller = call.caller
    answer = {**who(caller), "expires_at": timestamp(caller.expires_at)}
    if "workspace" in answer and (folder := _clone_folder(call)):
        answer["workspace"]["clone_folder"] = folder
    return Answer({**answer, "token_id": caller.token_id})


def _clone_folder(call: Call[None, None]) -> str | None:
    """Return the folder that the workspace is cloned from, for clients of this machine alone."""
    workspace = call.caller.workspace
    if workspace is None or call.client:
        return None
    url = call.session.get_one(Workspace, workspace.id).clone_url
    return url if url is not None and url.startswith("/") else None


def _revoke_token(call: Call[None, None]) -> Answer:
    token_id = call.path["id"]
    if not revoke(call.session, call.caller.user_id, token_id):
        raise Refused(404, "not_found", "you have no token of this id")
    return Answer({"id": token_id, "revoked": True})


ACCOUNTS = (
    Endpoint("GET", "/api/cli/verify", _verify, Needs.TOKEN),
    Endpoint("DELETE", "/api/cli/tokens/{id}", _revoke_token, Needs.TOKEN),
)
