"""Evaluations that ran on a user's machine: uploaded, checked, and kept as runs."""
