"""Every call of the API."""

from __future__ import annotations

from ..http.endpoints import Endpoint, Needs
from ..runs.kinds import EVALUATION, TRAINING
from .accounts import revoke_token, verify
from .runs import endpoints_of
from .secrets import SECRETS

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/api/cli/verify", verify, Needs.TOKEN),
    Endpoint("DELETE", "/api/cli/tokens/{id}", revoke_token, Needs.TOKEN),
    *SECRETS,
    *endpoints_of(EVALUATION),
    *endpoints_of(TRAINING),
)
