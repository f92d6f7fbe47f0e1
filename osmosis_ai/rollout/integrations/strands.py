"""The import path that workspaces use; the code is in `osmosis_ai.integrations.strands`."""

from ...integrations.strands import *
from ...integrations.strands import __all__
