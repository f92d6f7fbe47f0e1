"""Python environments of rollouts: built from their pyproject.toml, kept, and shared by runs."""
