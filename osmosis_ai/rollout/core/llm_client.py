"""The import path that existing projects use; the code is in `osmosis_ai.agents.client`."""

from ...agents.client import LLMClient

LLMClientProtocol = LLMClient

__all__ = ["LLMClientProtocol"]
