"""Submitting evaluations and training runs: config files, and where they are in a workspace."""
