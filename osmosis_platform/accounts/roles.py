"""What a member of a workspace may do."""

from __future__ import annotations

ROLES = ("owner", "member", "viewer")
OWNER = "owner"
"""May also change the members."""
VIEWER = "viewer"
"""May look at everything, and change nothing."""
