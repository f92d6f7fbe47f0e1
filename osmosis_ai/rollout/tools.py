"""The import path that existing projects use; the code is in `osmosis_ai.agents.tools`."""

from ..agents.tools import *
from ..agents.tools import __all__
