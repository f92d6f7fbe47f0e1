"""Pytest items: one for each run, marked test functions, gates, and the reports of each."""
