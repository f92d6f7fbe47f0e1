"""Times on the wire."""

from __future__ import annotations

from datetime import datetime, timezone


def timestamp(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    if moment is None:
        return None
    text = moment.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
