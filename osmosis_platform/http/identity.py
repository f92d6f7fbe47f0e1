"""Who makes a request and for which repository, by the headers of it.

A missing, an empty, a repeated, a malformed and a wrong Authorization get one and the same answer.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from sqlalchemy.orm import Session
from starlette.requests import Request

from ..accounts.registry import is_repository
from ..accounts.tokens import Caller, CallerWorkspace, find_caller, find_workspace
from ..database.models import Workspace
from ..errors import Refused

_BEARER = re.compile(rb"bearer ([!-~]{1,512})", re.IGNORECASE)
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")


def unauthorized() -> Refused:
    """Return the refusal of every request without a valid token."""
    return Refused(
        401,
        "unauthorized",
        "the token is missing, wrong, expired or revoked; log in with `osmosis login`",
        headers={"WWW-Authenticate": "Bearer"},
    )


def bearer_token(request: Request) -> str:
    """Return the token of a request, empty when it has none that could be one."""
    values = [value for name, value in request.scope["headers"] if name == b"authorization"]
    match = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    return match[1].decode("ascii") if match else ""


def authenticate(session: Session, token: str) -> Caller:
    """Return whom the token stands for; one that is missing is looked up all the same."""
    caller = find_caller(session, token)
    if caller is None:
        raise unauthorized()
    return caller


def client_address(request: Request) -> str:
    """Return the address that a request comes from; of IPv6, the network of 64 bits.

    A proxy is believed where its own address is a private one; without its word, one on this
    machine is not told from a user of it: then there is no address.
    """
    peer = _address(request.client.host if request.client else "")
    if peer is None or not peer.is_private:
        return _render_address(peer)
    said = request.headers.getlist("x-forwarded-for")[-1:]
    client = _address(said[0].rpartition(",")[2].strip()) if said else None
    return _render_address(client or (None if peer.is_loopback else peer))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _render_address(address: IPv4Address | IPv6Address | None) -> str:
    if address is None:
        return ""
    return str(address) if address.version == 4 else address.exploded[:19]


def check_client(request: Request, oldest: tuple[int, ...]) -> None:
    """Refuse a client that does not say its version, or is too old."""
    values = request.headers.getlist("x-osmosis-cli-version")
    if len(values) != 1 or not values[0].strip():
        raise Refused(400, "missing_header", "the header X-Osmosis-CLI-Version is missing")
    match = _VERSION.match(values[0].strip())
    if match and tuple(int(part) for part in match[0].split(".")) < oldest:
        wanted = ".".join(map(str, oldest))
        raise Refused(
            426,
            "client_too_old",
            f"this platform needs osmosis {wanted} or newer; upgrade with "
            "`pip install --upgrade pytest-osmosis`",
            details={"minimum_version": wanted},
            headers={"Upgrade": "osmosis-cli"},
        )


def workspace_of(session: Session, caller: Caller, request: Request) -> CallerWorkspace:
    """Return the workspace of the repository that the request names, if it is the caller's."""
    values = request.headers.getlist("x-osmosis-git")
    if len(values) != 1 or not values[0].strip():
        raise Refused(
            400,
            "missing_header",
            "the header X-Osmosis-Git is missing: OWNER/REPO of the workspace's repository",
        )
    repository = values[0]
    if not is_repository(repository):
        raise Refused(400, "invalid_header", "X-Osmosis-Git must be OWNER/REPO in lower case")
    if caller.workspace is None:
        found = find_workspace(session, caller.user_id, Workspace.repository == repository)
        if found is None:
            raise Refused(404, "no_workspace", "you have no workspace with this repository")
        return found
    if caller.workspace.repository != repository:
        raise Refused(
            403,
            "wrong_repository",
            f"the token is for the workspace {caller.workspace.name}, whose repository is "
            f"{caller.workspace.repository}; log in to the workspace of this one",
            details={"workspace": caller.workspace.name},
        )
    return caller.workspace
