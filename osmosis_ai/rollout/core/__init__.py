"""The rollout's vocabulary: wire schemas, errors, results, context and base class."""

from ...agents.base import *
from ...agents.base import __all__ as _of_base
from ...agents.errors import *
from ...agents.errors import __all__ as _of_errors
from ...agents.schemas import *
from ...agents.schemas import __all__ as _of_schemas
from .llm_client import LLMClientProtocol

__all__ = [*_of_base, *_of_errors, *_of_schemas, "LLMClientProtocol"]
