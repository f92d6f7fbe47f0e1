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
from .context import PageContext
from .rendering import go_to

DAYS = (7, 30, 90)
_MOST = 100
"""Tokens of one user in a workspace."""


def show_tokens(context: PageContext) -> Response:
    """Show them."""
    return _page(context)


def issue_token(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Issue one, and show it this once."""
    label, days = fields.get("label", "").strip(), fields.get("days", "")
    if not tokens.is_label(label):
        message = f"A token has a name of up to {tokens.LABEL_LENGTH} characters."
        raise Refused(422, "invalid", message)
    if days not in map(str, DAYS):
        raise Refused(422, "invalid", "Choose how long the token serves.")
    mine = tokens.valid_tokens(context.session, context.workspace.id, context.user.id)
    if len(mine) >= _MOST:
        raise Refused(409, "too_many", f"You have {_MOST} tokens here; revoke some first.")
    expires_s = int(days) * 24 * 3600
    _, text = tokens.issue(
        context.session, context.user.id, context.workspace.id, label=label, expires_s=expires_s
    )
    return _page(context, text)


def revoke_token(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Revoke one of the visitor's; an owner any of the workspace."""
    token_id = context.request.path_params["id"]
    token = context.session.scalar(select(Token).where(Token.id == token_id))
    if token is None or not _may_revoke(context, token):
        raise not_found("token")
    tokens.revoke(context.session, token.user_id, token_id)
    return go_to(f"{context.path('tokens')}?done=revoked")


def _may_revoke(context: PageContext, token: Token) -> bool:
    if token.workspace_id == context.workspace.id:
        return context.is_owner or token.user_id == context.user.id
    return token.workspace_id is None and token.user_id == context.user.id


def _page(context: PageContext, issued: str = "") -> Response:
    others = tokens.valid_tokens(context.session, context.workspace.id) if context.is_owner else ()
    return context.show(
        "tokens.html",
        active="tokens",
        mine=tokens.valid_tokens(context.session, context.workspace.id, context.user.id),
        others=[token for token in others if token.user_id != context.user.id],
        days=DAYS,
        issued=issued,
        platform_url=context.base_url,
    )
