"""The import path that workspaces use; the code is in `osmosis_ai.integrations.openai_agents`."""

from ...integrations.openai_agents import *
from ...integrations.openai_agents import __all__
