"""Every call of the API."""

from __future__ import annotations

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING

from ..http.endpoints import Endpoint
from .accounts import ACCOUNTS, DEVICES
from .datasets import DATASETS
from .imports import IMPORTS
from .rollout_servers import ROLLOUT_SERVERS
from .runs import endpoints_of
from .secrets import SECRETS

ENDPOINTS: tuple[Endpoint, ...] = (
    *DEVICES,
    *ACCOUNTS,
    *DATASETS,
    *SECRETS,
    *IMPORTS,
    *endpoints_of(EVALUATION),
    *endpoints_of(TRAINING),
    *ROLLOUT_SERVERS,
)
