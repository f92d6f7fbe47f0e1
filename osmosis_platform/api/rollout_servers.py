"""A rollout server that registers itself; this platform connects to none."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from sqlalchemy import select

from osmosis_ai.platform.config_models import Rule

from ..database.models import RolloutServer
from ..errors import Refused
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, Needs
from ..http.validation import Fields

_HOST = r"^(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|[0-9A-Fa-f:.]{2,45})$"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


class NewRolloutServer(Fields):
    """Where the server is, and the key that it asks for."""

    host: Annotated[str, Field(pattern=_HOST), Rule("a host name or an IP address")]
    port: Annotated[int, Field(ge=1, le=65535), Rule("a port, 1 to 65535")]
    agent_loop_name: Annotated[
        str,
        Field(min_length=1, max_length=255),
        AfterValidator(_printable),
        Rule("a name of 1 to 255 printable characters"),
    ]
    api_key: Annotated[str, Field(max_length=4096), Rule("a key, or null")] | None = Field(
        None, repr=False
    )


def _register(call: ApiCall[NewRolloutServer, None]) -> ApiAnswer:
    """Record a server, in place of one that the user has registered at the same address."""
    workspace = call.caller.workspace
    if workspace is not None and not workspace.may_write:
        raise Refused(403, "forbidden", "your role in the workspace is viewer: you can only look")
    at = {
        "user_id": call.caller.user_id,
        "workspace_id": None if workspace is None else workspace.id,
        "host": call.body.host,
        "port": call.body.port,
    }
    server = call.session.scalar(select(RolloutServer).filter_by(**at))
    is_new = server is None
    if server is None:
        server = RolloutServer(**at)
        call.session.add(server)
    key = call.body.api_key
    server.agent_loop_name = call.body.agent_loop_name
    server.encrypted_key = None if key is None else call.vault.encrypt(key)
    call.session.flush()
    document = {"id": server.id, "status": server.status, "health_check_result": "not checked"}
    return ApiAnswer(document, status=201 if is_new else 200)


ROLLOUT_SERVERS = (
    Endpoint(
        "POST", "/api/cli/rollout-server/register", _register, Needs.TOKEN, body=NewRolloutServer
    ),
)
