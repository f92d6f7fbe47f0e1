"""The fields of a body or of a query."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Fields(BaseModel):
    """Strict, nothing unknown, nothing echoed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)
