"""The import path that existing projects use; the code is in `osmosis_ai.agents.registry`."""

from ..agents.registry import *
from ..agents.registry import __all__
