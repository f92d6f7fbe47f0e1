"""The device flow (RFC 8628): a code that a user confirms in a browser, and the token for it.

Knows no terminal and no browser.

    Exception
    └── DeviceFlowEnded    there will be no token; `code` is RFC 8628's word, `str()` the sentence
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from ..secret import Redactor, Secret, check_api_key
from .account import text_or_empty
from .client import PlatformClient, PlatformError

AUTHORIZE = "/api/cli/device/authorize"
TOKEN = "/api/cli/device/token"
SLOWER_S = 5.0
"""What `slow_down` adds to the interval."""
_USUAL_INTERVAL_S = 5.0
_LONGEST_PAUSE_S = 60.0
_DEVICE_NAME_LIMIT = 100
_ENDINGS = {
    "access_denied": "the login was denied in the browser",
    "expired_token": "the code was not confirmed in time: run `osmosis login` for a new one",
}


class DeviceFlowEnded(Exception):
    """The user denied the login, or did not confirm it in time."""

    def __init__(self, code: str) -> None:
        super().__init__(_ENDINGS[code])
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """What a user confirms, where, and how long."""

    device_code: Secret
    user_code: str
    url: str
    """Where the code is to be typed."""
    complete_url: str
    """The same with the code in it; or `url`, where the platform has none such."""
    expires_s: float
    interval_s: float


def authorize(client: PlatformClient, device_name: str) -> DeviceCode:
    """Return a new code to confirm; raise PlatformError."""
    answer = client.post(AUTHORIZE, {"deviceName": device_name[:_DEVICE_NAME_LIMIT] or "unknown"})
    url = text_or_empty(answer, "verification_uri")
    complete = text_or_empty(answer, "verification_uri_complete") or url
    user_code = text_or_empty(answer, "user_code")
    device_code = text_or_empty(answer, "device_code")
    if not (user_code and device_code and _is_page(url) and _is_page(complete)):
        raise client.bad_answer("has no code to confirm")
    expires_s = _seconds(answer.get("expires_in"))
    if not expires_s:
        raise client.bad_answer("does not say how long its code is valid")
    return DeviceCode(
        device_code=Secret(device_code, "device code"),
        user_code=user_code,
        url=url,
        complete_url=complete,
        expires_s=expires_s,
        interval_s=_seconds(answer.get("interval")) or _USUAL_INTERVAL_S,
    )


def wait_for_token(client: PlatformClient, code: DeviceCode) -> Secret:
    """Return the token once the user has confirmed; raise DeviceFlowEnded or PlatformError."""
    ends, interval_s = monotonic() + code.expires_s, code.interval_s
    while True:
        sleep(interval_s)
        if monotonic() >= ends:
            raise DeviceFlowEnded("expired_token")
        try:
            answer = client.post(TOKEN, {"device_code": code.device_code.reveal()})
        except PlatformError as error:
            error.message = Redactor([code.device_code])(error.message)
            interval_s = _next_interval_s(error, interval_s)
            continue
        try:
            return check_api_key(text_or_empty(answer, "access_token"), "the token of the platform")
        except ValueError:
            raise client.bad_answer("has no token that can be used") from None


def _next_interval_s(error: PlatformError, interval_s: float) -> float:
    """The pause before the next request; raises what ends the wait."""
    word = error.said if error.status == 400 else ""
    if word == "authorization_pending":
        return interval_s
    if word == "slow_down":
        return interval_s + SLOWER_S
    if word in _ENDINGS:
        raise DeviceFlowEnded(word) from None
    if not error.is_passing:
        raise error
    return max(error.retry_after_s or 0.0, min(2 * interval_s, _LONGEST_PAUSE_S))


def _is_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()


def _seconds(value: Any) -> float:
    """A positive number of seconds, 0 where there is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e6 else 0.0
