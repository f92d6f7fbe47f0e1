"""What options name by `module:attribute`: importing it, and telling what is wrong with it.

    load_object       the object that `module:attribute` or `path/to/file.py:attribute` names
    load_module       the module that holds it
    classify_agent    agent loop, workflow or neither
    as_agent_loop     an agent loop from an instance or a class
    instantiated      an instance of a class that needs no arguments
    kind_of, user_traceback    what a value is, and what was raised, for a message
    ImportingError    nothing usable is there; `str()` is the whole message, the option included

Nothing of the SDK is imported here, nor anything else that is heavy.
"""

from __future__ import annotations

from .agents import AgentKind, as_agent_loop, classify_agent, instantiated
from .loading import load_module, load_object, put_on_path
from .mistakes import ImportingError, kind_of, user_traceback

__all__ = [
    "AgentKind",
    "ImportingError",
    "as_agent_loop",
    "classify_agent",
    "instantiated",
    "kind_of",
    "load_module",
    "load_object",
    "put_on_path",
    "user_traceback",
]
