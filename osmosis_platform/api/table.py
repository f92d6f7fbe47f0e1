"""Every call of the API."""

from __future__ import annotations

from ..http.endpoints import Endpoint, Needs
from ..runs.kinds import EVALUATION
from .accounts import revoke_token, verify
from .runs import endpoints_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/api/cli/verify", verify, Needs.TOKEN),
    Endpoint("DELETE", "/api/cli/tokens/{id}", revoke_token, Needs.TOKEN),
    *endpoints_of(EVALUATION),
)
