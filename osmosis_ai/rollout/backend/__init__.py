"""The import path that workspaces use; the code is in `osmosis_ai.workflow_server.backend`."""

from ...workflow_server.backend import *
from ...workflow_server.backend import __all__
