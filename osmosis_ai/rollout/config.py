"""The import path that existing projects use; the code is in `osmosis_ai.rollout_settings`."""

from ..rollout_settings import *
from ..rollout_settings import __all__
