"""The import path that workspaces use; the code is in `osmosis_ai.agents.workflow`."""

from ..agents.workflow import *
from ..agents.workflow import __all__
