"""From runs to numbers; pure."""
