"""Datasets: their records, and their files on disk."""
