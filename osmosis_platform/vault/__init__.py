"""Secrets, encrypted before they are stored."""
