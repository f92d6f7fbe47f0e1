"""Rollout servers in the database: one for each address that a user registers in a workspace."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..accounts.tokens import Caller
from ..database.models import RolloutServer
from ..vault.cipher import Vault


def register(
    session: Session,
    vault: Vault,
    caller: Caller,
    *,
    host: str,
    port: int,
    agent_loop_name: str,
    api_key: str | None,
) -> tuple[RolloutServer, bool]:
    """Record a server, in place of one at the same address; and whether it is new."""
    workspace_id = None if caller.workspace is None else caller.workspace.id
    server = session.scalar(
        select(RolloutServer).where(
            RolloutServer.user_id == caller.user_id,
            RolloutServer.workspace_id == workspace_id,
            RolloutServer.host == host,
            RolloutServer.port == port,
        )
    )
    is_new = server is None
    if server is None:
        server = RolloutServer(
            user_id=caller.user_id, workspace_id=workspace_id, host=host, port=port
        )
        session.add(server)
    server.agent_loop_name = agent_loop_name
    server.encrypted_key = None if api_key is None else vault.encrypt(api_key)
    session.flush()
    return server, is_new
