"""The import path that existing projects use; the code is in `osmosis_ai.rollout_server.app`."""

from ...rollout_server.app import *
from ...rollout_server.app import __all__
