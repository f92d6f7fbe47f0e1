"""The tokens that serve in a workspace: issuing one, which is shown once, and revoking.

Members see their own, owners all of the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from starlette.responses import Response

from ..accounts import tokens
from ..database.models import Token
from ..errors import Refused, not_found
from .rendering import go_to
from .visits import Visit

DAYS = (7, 30, 90)
_MOST = 100
"""Tokens of one user in a workspace."""


def show_tokens(visit: Visit) -> Response:
    """Show them."""
    return _page(visit)


def issue_token(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Issue one, and show it this once."""
    label, days = fields.get("label", "").strip(), fields.get("days", "")
    if not tokens.is_label(label):
        told = f"A token has a name of up to {tokens.LABEL_LENGTH} characters."
        raise Refused(422, "invalid", told)
    if days not in map(str, DAYS):
        raise Refused(422, "invalid", "Choose how long the token serves.")
    mine = tokens.valid_tokens(visit.session, visit.workspace.id, visit.user.id)
    if len(mine) >= _MOST:
        raise Refused(409, "too_many", f"You have {_MOST} tokens here; revoke some first.")
    expires_s = int(days) * 24 * 3600
    _, text = tokens.issue(
        visit.session, visit.user.id, visit.workspace.id, label=label, expires_s=expires_s
    )
    return _page(visit, text)


def revoke_token(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Revoke one of the visitor's; an owner any of the workspace."""
    token_id = visit.request.path_params["id"]
    token = visit.session.scalar(select(Token).where(Token.id == token_id))
    if token is None or not _may_revoke(visit, token):
        raise not_found("token")
    tokens.revoke(visit.session, token.user_id, token_id)
    return go_to(f"{visit.path('tokens')}?done=revoked")


def _may_revoke(visit: Visit, token: Token) -> bool:
    if token.workspace_id == visit.workspace.id:
        return visit.is_owner or token.user_id == visit.user.id
    return token.workspace_id is None and token.user_id == visit.user.id


def _page(visit: Visit, issued: str = "") -> Response:
    others = tokens.valid_tokens(visit.session, visit.workspace.id) if visit.is_owner else ()
    return visit.show(
        "tokens.html",
        active="tokens",
        mine=tokens.valid_tokens(visit.session, visit.workspace.id, visit.user.id),
        others=[token for token in others if token.user_id != visit.user.id],
        days=DAYS,
        issued=issued,
        platform_url=visit.base_url,
    )
