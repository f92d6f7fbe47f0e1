"""Calls to the trainer: model calls, delivery of results, and which addresses are allowed."""
