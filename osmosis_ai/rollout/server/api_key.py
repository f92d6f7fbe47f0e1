"""The import path of existing projects; the code is in `osmosis_ai.rollout_server.api_key`."""

from ...rollout_server.api_key import *
from ...rollout_server.api_key import __all__
