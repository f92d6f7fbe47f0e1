"""The members of a workspace and their roles, which its owners change."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from ..accounts import registry
from ..accounts.registry import AccountError
from ..accounts.roles import OWNER, ROLES
from ..database.models import Member, User, Workspace
from ..errors import Refused, not_found
from .context import PageContext
from .rendering import go_to


def show_members(context: PageContext) -> Response:
    """Show them."""
    members = registry.members_of(context.session, context.workspace.id)
    return context.show("members.html", active="members", members=members, roles=ROLES)


def add_member(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Add a user who has an account."""
    _check_owner(context)
    try:
        user = registry.find_user(context.session, fields.get("name", ""))
    except AccountError:
        message = "There is no account of this name; the operator of the platform adds accounts."
        raise Refused(422, "invalid", message) from None
    if context.session.get(Member, (context.workspace.id, user.id)) is not None:
        raise Refused(409, "member", "This user is a member already.")
    return _set_role(context, user, fields.get("role", ""))


def change_role(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Give a member another role."""
    _check_owner(context)
    member = _member(context)
    if fields.get("role") != OWNER:
        _check_another_owner(context, member)
    return _set_role(context, member.user, fields.get("role", ""))


def remove_member(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Take a member out of the workspace."""
    _check_owner(context)
    member = _member(context)
    _check_another_owner(context, member)
    registry.remove_member(context.session, context.workspace.id, member.user_id)
    if member.user_id == context.user.id:
        return go_to("/")
    return go_to(f"{context.path('members')}?done=removed")


def _set_role(context: PageContext, user: User, role: str) -> Response:
    workspace = context.session.get_one(Workspace, context.workspace.id)
    try:
        registry.add_member(context.session, workspace, user, role)
    except AccountError:
        raise Refused(422, "invalid", "Choose one of the roles.") from None
    return go_to(f"{context.path('members')}?done=saved")


def _member(context: PageContext) -> Member:
    key = (context.workspace.id, context.request.path_params["id"])
    member = context.session.get(Member, key)
    if member is None:
        raise not_found("member")
    return member


def _check_owner(context: PageContext) -> None:
    if not context.is_owner:
        raise Refused(403, "forbidden", "only an owner of the workspace changes its members")


def _check_another_owner(context: PageContext, member: Member) -> None:
    """Refuse to leave a workspace without an owner, also when two of them change each other."""
    context.session.get_one(Workspace, context.workspace.id, with_for_update=True)
    members = registry.members_of(context.session, context.workspace.id)
    if not any(role == OWNER and user.id != member.user_id for user, role in members):
        raise Refused(409, "last_owner", "A workspace keeps one owner: make another one first.")
