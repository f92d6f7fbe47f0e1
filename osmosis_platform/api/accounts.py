"""What a token stands for, and its end; the login of a device, by a code that a user confirms."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from osmosis_ai.platform.config_models import Rule

from ..accounts import attempts, grants
from ..accounts.tokens import Caller, find_caller, revoke
from ..database.models import Workspace
from ..errors import Refused
from ..http.endpoints import ApiAnswer, ApiCall, Endpoint, Needs
from ..http.validation import Fields
from ..identifiers import timestamp


def who(caller: Caller) -> dict[str, Any]:
    """Return the user and the workspace that a token stands for."""
    user = {"id": caller.user_id, "email": caller.email, "name": caller.user_name}
    if caller.workspace is None:
        return {"user": user}
    workspace = {
        "id": caller.workspace.id,
        "name": caller.workspace.name,
        "role": caller.workspace.role,
    }
    return {"user": user, "workspace": workspace}


def _verify(call: ApiCall[None, None]) -> ApiAnswer:
    caller = call.caller
    answer = {**who(caller), "expires_at": timestamp(caller.expires_at)}
    if "workspace" in answer and (folder := _clone_folder(call)):
        answer["workspace"]["clone_folder"] = folder
    return ApiAnswer({**answer, "token_id": caller.token_id})


def _clone_folder(call: ApiCall[None, None]) -> str | None:
    """Return the folder that the workspace is cloned from, for clients of this machine alone."""
    workspace = call.caller.workspace
    if workspace is None or call.client:
        return None
    url = call.session.get_one(Workspace, workspace.id).clone_url
    return url if url is not None and url.startswith("/") else None


def _revoke_token(call: ApiCall[None, None]) -> ApiAnswer:
    token_id = call.path["id"]
    if not revoke(call.session, call.caller.user_id, token_id):
        raise Refused(404, "not_found", "you have no token of this id")
    return ApiAnswer({"id": token_id, "revoked": True})


ACCOUNTS = (
    Endpoint("GET", "/api/cli/verify", _verify, Needs.TOKEN),
    Endpoint("DELETE", "/api/cli/tokens/{id}", _revoke_token, Needs.TOKEN),
)


class Device(Fields):
    """A device that asks to be logged in."""

    deviceName: Annotated[
        str, Field(min_length=1, max_length=200), Rule("a name of 1 to 200 characters")
    ]


class DeviceCode(Fields):
    """A device that asks again."""

    device_code: Annotated[str, Field(max_length=200), Rule("the device_code of an answer")]


def _authorize(call: ApiCall[Device, None]) -> ApiAnswer:
    limits = call.settings.limits
    if call.client:
        key = attempts.key_of(f"device {call.client}", call.vault.sign)
        message = "too many logins were begun from this address"
        attempts.count(call.session, key, limits.device_logins, message)
    grant, code = grants.authorize(call.session, _printable(call.body.deviceName), limits)
    page = f"{call.base_url}/device"
    return ApiAnswer(
        {
            "device_code": code,
            "user_code": grant.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?code={grant.user_code}",
            "expires_in": limits.device_code_expires_s,
            "interval": grant.interval_s,
        }
    )


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _token(call: ApiCall[DeviceCode, None]) -> ApiAnswer:
    limits = call.settings.limits
    with call.database.writing() as session:
        found = grants.poll(session, call.body.device_code, limits)
        if not isinstance(found, Refused):
            token, text = found
            caller = find_caller(session, text)
    if isinstance(found, Refused):
        raise found
    assert isinstance(caller, Caller)
    return ApiAnswer(
        {
            "access_token": text,
            "token_type": "Bearer",
            "token_id": token.id,
            "expires_in": limits.token_expires_s,
            "expires_at": timestamp(token.expires_at),
            **who(caller),
        }
    )


DEVICES = (
    Endpoint("POST", "/api/cli/device/authorize", _authorize, Needs.NOTHING, body=Device),
    Endpoint(
        "POST",
        "/api/cli/device/token",
        _token,
        Needs.NOTHING,
        body=DeviceCode,
        in_transaction=False,
    ),
)
