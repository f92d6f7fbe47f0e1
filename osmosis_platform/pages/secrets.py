"""The secrets of a workspace and of its visitor, by name: setting and deleting them.

No page holds a value: what was typed is not shown again, not even beside a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from osmosis_ai.platform.config_models import SECRET_NAME

from ..errors import Refused
from ..http.values import check_value
from ..vault import records
from .rendering import go_to
from .visits import Visit

_NAME_LENGTH = 255


def show_secrets(visit: Visit) -> Response:
    """Show their names."""
    found, _ = records.visible(
        visit.session,
        visit.workspace.id,
        visit.user.id,
        records.SCOPES,
        limit=2 * visit.settings.limits.secrets,
        offset=0,
    )
    shown = [("workspace" if each.owner == records.WORKSPACE else "user", each) for each in found]
    return visit.show("secrets.html", active="secrets", secrets=shown)


def set_secret(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Set one."""
    name, scope = _named(fields)
    limits = visit.settings.limits
    # Browsers send each line end of a text area as two characters.
    value = fields.get("value", "").replace("\r\n", "\n")
    check_value(value, limits.secret_bytes)
    records.store(
        visit.session,
        visit.vault,
        visit.workspace.id,
        visit.user.id,
        scope=scope,
        name=name,
        value=value,
        limit=limits.secrets,
    )
    return go_to(f"{visit.path('secrets')}?done=saved")


def delete_secret(visit: Visit, fields: Mapping[str, str]) -> Response:
    """Delete one."""
    name, scope = _named(fields)
    records.delete(visit.session, visit.workspace.id, visit.user.id, scope=scope, name=name)
    return go_to(f"{visit.path('secrets')}?done=deleted")


def _named(fields: Mapping[str, str]) -> tuple[str, str]:
    name, scope = fields.get("name", ""), fields.get("scope", "")
    if not SECRET_NAME.fullmatch(name) or len(name) > _NAME_LENGTH:
        told = "The name must be capital letters, digits and underscores, as in OPENAI_API_KEY."
        raise Refused(422, "invalid", told)
    if scope not in records.SCOPES:
        raise Refused(422, "invalid", "Choose for whom the secret is.")
    return name, scope
