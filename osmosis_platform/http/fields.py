"""The fields of a body or of a query, and lists that are given in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Fields(BaseModel):
    """Strict, nothing unknown, nothing echoed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


DEFAULT_LIMIT = 50
MAX_LIMIT = 200


class Page(Fields):
    """Which records of a list are wanted."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    offset: int = Field(0, ge=0, le=10**9)


def page_document(name: str, records: Sequence[Any], total: int, page: Page) -> dict[str, Any]:
    """Return a page of a list, and where the next one begins."""
    end = page.offset + len(records)
    has_more = end < total and bool(records)
    return {
        name: list(records),
        "total_count": total,
        "has_more": has_more,
        "next_offset": end if has_more else None,
    }
