"""The secrets of a workspace and of its visitor, by name: setting and deleting them.

No page holds a value: what was typed is not shown again, not even beside a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from osmosis_ai.platform.config_models import SECRET_NAME

from ..errors import Refused
from ..http.validation import check_value
from ..vault import records
from .context import PageContext
from .rendering import go_to

_NAME_LENGTH = 255


def show_secrets(context: PageContext) -> Response:
    """Show their names."""
    found, _ = records.visible(
        context.session,
        context.workspace.id,
        context.user.id,
        records.SCOPES,
        limit=2 * context.settings.limits.secrets,
        offset=0,
    )
    shown = [("workspace" if each.owner == records.WORKSPACE else "user", each) for each in found]
    return context.show("secrets.html", active="secrets", secrets=shown)


def set_secret(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Set one."""
    name, scope = _named(fields)
    limits = context.settings.limits
    # Browsers send each line end of a text area as two characters.
    value = fields.get("value", "").replace("\r\n", "\n")
    check_value(value, limits.secret_bytes)
    records.store(
        context.session,
        context.vault,
        context.workspace.id,
        context.user.id,
        scope=scope,
        name=name,
        value=value,
        limit=limits.secrets,
    )
    return go_to(f"{context.path('secrets')}?done=saved")


def delete_secret(context: PageContext, fields: Mapping[str, str]) -> Response:
    """Delete one."""
    name, scope = _named(fields)
    records.delete(context.session, context.workspace.id, context.user.id, scope=scope, name=name)
    return go_to(f"{context.path('secrets')}?done=deleted")


def _named(fields: Mapping[str, str]) -> tuple[str, str]:
    name, scope = fields.get("name", ""), fields.get("scope", "")
    if not SECRET_NAME.fullmatch(name) or len(name) > _NAME_LENGTH:
        message = "The name must be capital letters, digits and underscores, as in OPENAI_API_KEY."
        raise Refused(422, "invalid", message)
    if scope not in records.SCOPES:
        raise Refused(422, "invalid", "Choose for whom the secret is.")
    return name, scope
