"""Intervals and tests: formulas with their sources."""
