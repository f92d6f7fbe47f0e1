"""The import path that existing projects use; the code is in `osmosis_ai.agents`."""

from ..agents.message_fields import *
from ..agents.message_fields import __all__ as _of_messages
from ..agents.schemas import normalize_stop

__all__ = [*_of_messages, "normalize_stop"]
