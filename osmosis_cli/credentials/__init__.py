"""The logins at platforms: which one is used, and where they are kept."""
