"""The members of a workspace and their roles, which its owners change."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from ..accounts import registry
from ..accounts.registry import AccountError
from ..accounts.roles import OWNER, ROLES
from ..database.models import Member, User, Workspace
from ..errors import Refused, not_found
from .rendering import go_to
from .visits import Visit


def show_members(visit: Visit) -> Response:
    """Show them."""
    members = registry.members_of(visit.session, visit.workspace.id)
    return visit.show("members.html", active="members", members=members, roles=ROLES)


def add_member(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Add a user who has an account."""
    _check_owner(visit)
    try:
        user = registry.find_user(visit.session, fields.get("name", ""))
    except AccountError:
        told = "There is no account of this name; the operator of the platform adds accounts."
        raise Refused(422, "invalid", told) from None
    if visit.session.get(Member, (visit.workspace.id, user.id)) is not None:
        raise Refused(409, "member", "This user is a member already.")
    return _set_role(visit, user, fields.get("role", ""))


def change_role(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Give a member another role."""
    _check_owner(visit)
    member = _member(visit)
    if fields.get("role") != OWNER:
        _check_another_owner(visit, member)
    return _set_role(visit, member.user, fields.get("role", ""))


def remove_member(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Take a member out of the workspace."""
    _check_owner(visit)
    member = _member(visit)
    _check_another_owner(visit, member)
    registry.remove_member(visit.session, visit.workspace.id, member.user_id)
    if member.user_id == visit.user.id:
        return go_to("/")
    return go_to(f"{visit.path('members')}?done=removed")


def _set_role(visit: Visit, user: User, role: str) -> Response:
    workspace = visit.session.get_one(Workspace, visit.workspace.id)
    try:
        registry.add_member(visit.session, workspace, user, role)
    except AccountError:
        raise Refused(422, "invalid", "Choose one of the roles.") from None
    return go_to(f"{visit.path('members')}?done=saved")


def _member(visit: Visit) -> Member:
    key = (visit.workspace.id, visit.request.path_params["id"])
    member = visit.session.get(Member, key)
    if member is None:
        raise not_found("member")
    return member


def _check_owner(visit: Visit) -> None:
    if not visit.is_owner:
        raise Refused(403, "forbidden", "only an owner of the workspace changes its members")


def _check_another_owner(visit: Visit, member: Member) -> None:
    """Refuse to leave a workspace without an owner, also when two of them change each other."""
    visit.session.get_one(Workspace, visit.workspace.id, with_for_update=True)
    members = registry.members_of(visit.session, visit.workspace.id)
    if not any(role == OWNER and user.id != member.user_id for user, role in members):
        raise Refused(409, "last_owner", "A workspace keeps one owner: make another one first.")
