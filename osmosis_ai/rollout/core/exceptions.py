"""The import path that existing projects use; the code is in `osmosis_ai.agents.errors`."""

from ...agents.errors import *
from ...agents.errors import __all__
