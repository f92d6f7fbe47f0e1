"""Setting, listing and deleting secrets; no answer holds a value."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from osmosis_ai.platform.config_models import SECRET_NAME, Rule

from ..database.models import StoredSecret
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, Needs
from ..http.validation import Fields, Page, check_value, page_document
from ..identifiers import timestamp
from ..vault import records

PATH = "/api/cli/environment-secrets"


Name = Annotated[
    str,
    Field(max_length=255, pattern=f"^{SECRET_NAME.pattern}$"),
    Rule("the name of a secret: [A-Z][A-Z0-9_]*"),
]
Scope = Annotated[Literal["user", "workspace"], Rule("user or workspace")]


class NewSecret(Fields):
    """A secret to store."""

    name: Name
    value: Annotated[str, Rule("a string")] = Field(repr=False)
    scope: Scope


class NamedSecret(Fields):
    """A secret to delete."""

    name: Name
    scope: Scope


class SecretPage(Page):
    """Which secrets are wanted."""

    scope: Annotated[Literal["all", "user", "workspace"], Rule("all, user or workspace")] = "all"


def _set(call: ApiCall[NewSecret, None]) -> ApiAnswer:
    check_value(call.body.value, call.settings.limits.secret_bytes)
    secret, is_new = records.store(
        call.session,
        call.vault,
        call.workspace.id,
        call.caller.user_id,
        scope=call.body.scope,
        name=call.body.name,
        value=call.body.value,
        limit=call.settings.limits.secrets,
    )
    return ApiAnswer(_metadata(secret), status=201 if is_new else 200)


def _delete(call: ApiCall[NamedSecret, None]) -> ApiAnswer:
    named = {"name": call.body.name, "scope": call.body.scope}
    secret_id = records.delete(call.session, call.workspace.id, call.caller.user_id, **named)
    return ApiAnswer({"id": secret_id, **named, "deleted": True})


def _list(call: ApiCall[None, SecretPage]) -> ApiAnswer:
    page = call.query
    secrets, total = records.visible(
        call.session,
        call.workspace.id,
        call.caller.user_id,
        records.SCOPES if page.scope == "all" else (page.scope,),
        limit=page.limit,
        offset=page.offset,
    )
    shown = [_metadata(secret) for secret in secrets]
    return ApiAnswer(page_document("environment_secrets", shown, total, page))


def _metadata(secret: StoredSecret) -> dict[str, Any]:
    return {
        "id": secret.id,
        "name": secret.name,
        "scope": "workspace" if secret.owner == records.WORKSPACE else "user",
        "created_at": timestamp(secret.created_at),
        "updated_at": timestamp(secret.updated_at),
        "creator_name": secret.creator.name,
    }


SECRETS = (
    Endpoint("GET", PATH, _list, query=SecretPage),
    Endpoint("POST", PATH, _set, Needs.WRITE, body=NewSecret),
    Endpoint("DELETE", PATH, _delete, Needs.WRITE, body=NamedSecret),
)
