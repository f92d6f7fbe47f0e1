"""Measurements of this project against a bare client loop and its peers; see README.md."""
