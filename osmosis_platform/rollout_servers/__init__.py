"""Rollout servers that registered themselves."""
