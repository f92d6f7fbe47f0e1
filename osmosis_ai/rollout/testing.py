"""The import path that existing projects use; the code is in `osmosis_ai.agents.testing`.

The mock trainer is in `osmosis_ai.rollout_server.mock_trainer`.
"""

from ..agents.testing import *
from ..agents.testing import __all__ as _of_agents
from ..rollout_server.mock_trainer import *
from ..rollout_server.mock_trainer import __all__ as _of_trainer

__all__ = [*_of_agents, *_of_trainer]
