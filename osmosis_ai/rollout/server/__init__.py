"""The import path that existing projects use; the code is in `osmosis_ai.rollout_server`."""

from ...rollout_server.api_key import generate_api_key, validate_api_key
from ...rollout_server.app import create_app
from ...rollout_server.serve import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    ServeError,
    serve_agent_loop,
    validate_and_report,
)
from ...workflow_server.app import ControllerAuth, create_rollout_server

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "ControllerAuth",
    "ServeError",
    "create_app",
    "create_rollout_server",
    "generate_api_key",
    "serve_agent_loop",
    "validate_and_report",
    "validate_api_key",
]
