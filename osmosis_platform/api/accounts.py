"""What a token stands for, and its end."""

from __future__ import annotations

from ..accounts.tokens import revoke
from ..errors import Refused
from ..http.endpoints import Answer, Call
from ..runs.wire import timestamp


def verify(call: Call[None, None]) -> Answer:
    """Tell whom the token stands for, until when, and in which workspace."""
    caller = call.caller
    document = {
        "user": {"id": caller.user_id, "email": caller.email, "name": caller.user_name},
        "expires_at": timestamp(caller.expires_at),
        "token_id": caller.token_id,
    }
    if workspace := caller.workspace:
        document["workspace"] = {
            "id": workspace.id,
            "name": workspace.name,
            "role": workspace.role,
        }
    return Answer(document)


def revoke_token(call: Call[None, None]) -> Answer:
    """Revoke a token of the user's own."""
    token_id = call.path["id"]
    if not revoke(call.session, call.caller.user_id, token_id):
        raise Refused(404, "not_found", "you have no token of this id")
    return Answer({"id": token_id, "revoked": True})
