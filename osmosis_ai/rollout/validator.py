"""The import path that existing projects use; the code is in `osmosis_ai.agents.validation`."""

from ..agents.validation import *
from ..agents.validation import __all__
