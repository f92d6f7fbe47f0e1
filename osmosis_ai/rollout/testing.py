"""The import path that existing projects use; the code is in `osmosis_ai.agents.testing`."""

from ..agents.testing import *
from ..agents.testing import __all__
