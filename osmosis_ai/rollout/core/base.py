"""The import path that existing projects use; the code is in `osmosis_ai.agents.base`."""

from ...agents.base import *
from ...agents.base import __all__
