"""What a token stands for, and its end."""

from __future__ import annotations

from typing import Any

from ..accounts.tokens import Caller, revoke
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
    expires_at = timestamp(caller.expires_at)
    return Answer({**who(caller), "expires_at": expires_at, "token_id": caller.token_id})


def _revoke_token(call: Call[None, None]) -> Answer:
    token_id = call.path["id"]
    if not revoke(call.session, call.caller.user_id, token_id):
        raise Refused(404, "not_found", "you have no token of this id")
    return Answer({"id": token_id, "revoked": True})


ACCOUNTS = (
    Endpoint("GET", "/api/cli/verify", _verify, Needs.TOKEN),
    Endpoint("DELETE", "/api/cli/tokens/{id}", _revoke_token, Needs.TOKEN),
)
