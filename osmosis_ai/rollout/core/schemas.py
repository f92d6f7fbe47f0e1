"""The import path that existing projects use; the code is in `osmosis_ai.agents.schemas`."""

from ...agents.schemas import *
from ...agents.schemas import __all__
