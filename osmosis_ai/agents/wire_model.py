"""The base of the pydantic models that trainer, RolloutServer and agents exchange."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """What all models of the wire are; one that is never read or written is never built."""

    model_config = ConfigDict(defer_build=True)
