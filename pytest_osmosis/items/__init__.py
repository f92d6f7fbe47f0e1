"""Pytest items: one for each run, and their reports."""
