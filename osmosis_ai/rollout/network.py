"""The import path of existing projects; the code is in `osmosis_ai.rollout_server.network`."""

from ..rollout_server.network import *
from ..rollout_server.network import __all__
