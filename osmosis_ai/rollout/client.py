"""The import path of existing projects; the code is in `osmosis_ai.rollout_server.trainer`."""

from ..agents.results import CompletionsResult
from ..rollout_server.trainer.client import OsmosisLLMClient

__all__ = ["CompletionsResult", "OsmosisLLMClient"]
