"""Logging in on a device: asking for a code, and for the token once a user has confirmed it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from osmosis_ai.platform.config_models import Rule

from ..accounts.tokens import Caller, find_caller
from ..devices import grants
from ..errors import Refused
from ..http.endpoints import Answer, Call, Endpoint, Needs
from ..http.fields import Fields
from ..timestamps import timestamp
from .accounts import who


class Device(Fields):
    """A device that asks to be logged in."""

    deviceName: Annotated[
        str, Field(min_length=1, max_length=200), Rule("a name of 1 to 200 characters")
    ]


class DeviceCode(Fields):
    """A device that asks again."""

    device_code: Annotated[str, Field(max_length=200), Rule("the device_code of an answer")]


def _authorize(call: Call[Device, None]) -> Answer:
    limits = call.settings.limits
    if call.client:
        call.device_logins.check(call.client, "too many logins were begun from this address")
        call.device_logins.count(call.client)
    grant, code = grants.authorize(call.session, _printable(call.body.deviceName), limits)
    page = f"{call.base_url}/device"
    return Answer(
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


def _token(call: Call[DeviceCode, None]) -> Answer:
    limits = call.settings.limits
    with call.database.writing() as session:
        found = grants.poll(session, call.body.device_code, limits)
        if not isinstance(found, Refused):
            token, text = found
            caller = find_caller(session, text)
    if isinstance(found, Refused):
        raise found
    assert isinstance(caller, Caller)
    return Answer(
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
