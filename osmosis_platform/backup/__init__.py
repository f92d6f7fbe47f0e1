"""A platform in one file: written while it serves, and restored into an empty place."""
