"""The import path that workspaces use; the code is in `osmosis_ai.workflow_server.backend`."""

from ...workflow_server.backend import ExecutionBackend, LocalBackend, ResultCallback

__all__ = [
    "ExecutionBackend",
    "LocalBackend",
    "ResultCallback",
]
