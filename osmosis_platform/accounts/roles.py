"""What a member of a workspace may do."""

from __future__ import annotations

ROLES = ("owner", "member", "viewer")
VIEWER = "viewer"
"""May look at everything, and change nothing."""
