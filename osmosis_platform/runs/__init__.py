"""Submitted evaluations and training runs, as they are kept."""
