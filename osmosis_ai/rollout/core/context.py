"""The import path that existing projects use; the code is in `osmosis_ai.agents.context`."""

from ...agents.context import *
from ...agents.context import __all__
