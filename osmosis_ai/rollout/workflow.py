"""The import path that existing projects use; the code is in `osmosis_ai.agents.workflow`."""

from ..agents.workflow import *
from ..agents.workflow import __all__
