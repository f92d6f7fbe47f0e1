"""The import path that existing projects use; the code is in `osmosis_ai.rollout_server.serve`."""

from ...rollout_server.serve import *
from ...rollout_server.serve import __all__
