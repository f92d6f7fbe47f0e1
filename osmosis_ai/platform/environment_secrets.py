"""The secrets that a platform keeps for runs: set and deleted by name, listed without values.

Which of them a run gets is known by name and scope: no value ever leaves the platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..secret import Redactor, Secret
from .answers import text_of
from .client import Listing, PlatformClient, PlatformError

PATH = "/api/cli/environment-secrets"
SCOPES = {"personal": "user", "workspace": "workspace"}
"""What commands call a scope, and the wire; the first beats the second."""


def set_secret(client: PlatformClient, name: str, value: Secret, scope: str) -> Mapping[str, Any]:
    """Store a value under a name, and return its metadata; raise PlatformError.

    An error that quotes the value, in any spelling, says only that there was one.
    """
    body = {"name": name, "value": value.reveal(), "scope": SCOPES[scope]}
    try:
        return client.post(PATH, body, subject="place for secrets")
    except PlatformError as error:
        text = str(error)
        if value.reveal() in text or Redactor([value])(text) != text:
            raise PlatformError(
                f"{client.origin} does not accept this secret; its answer quotes the value, and is "
                "not shown",
                code=error.code,
                status=error.status,
                request_id=error.request_id,
            ) from None
        raise


def list_secrets(client: PlatformClient) -> Listing:
    """Return the metadata of all secrets that runs of the user find; raise PlatformError."""
    return client.collect(PATH, "environment_secrets", params={"scope": "all"})


def delete_secret(client: PlatformClient, name: str, scope: str) -> None:
    """Delete a secret; raise PlatformError."""
    subject = f"{scope} secret {name!r}"
    client.delete(PATH, {"name": name, "scope": SCOPES[scope]}, subject=subject)


def shown_scope(metadata: Mapping[str, Any]) -> str:
    """Return the scope of metadata as commands call it; as the wire does, where it is another."""
    scope = metadata.get("scope")
    return next((name for name, wire in SCOPES.items() if wire == scope), str(scope or "unknown"))


def resolve_secrets(client: PlatformClient, required: Sequence[str]) -> dict[str, str]:
    """Return the scope of each secret that a run gets, without those that the platform lacks.

    It is `personal` or `workspace`. Asks nothing when the run needs none.
    """
    secrets = list_secrets(client).items if required else ()
    records = [(text_of(item, "name"), text_of(item, "scope")) for item in secrets]
    return {name: scope for name in required if (scope := _scope(name, records))}


def _scope(name: str, records: Iterable[tuple[str | None, str | None]]) -> str | None:
    scopes = {scope for known, scope in records if known == name}
    return next((shown for shown, scope in SCOPES.items() if scope in scopes), None)
