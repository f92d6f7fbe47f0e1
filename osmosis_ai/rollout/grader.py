"""The import path that existing projects use; the code is in `osmosis_ai.agents.grader`."""

from ..agents.grader import *
from ..agents.grader import __all__
