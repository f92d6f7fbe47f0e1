"""Logging in on a device by a code that a user confirms in a browser."""
