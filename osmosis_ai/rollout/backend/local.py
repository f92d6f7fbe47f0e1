"""The import path that workspaces use; the code is in `osmosis_ai.workflow_server.backend`."""

from ...workflow_server.backend import LocalBackend

__all__ = [
    "LocalBackend",
]
