"""The import path that existing projects use; the code is in `osmosis_ai.rollout_server.app`."""

from ...rollout_server.app import create_app

__all__ = ["create_app"]
