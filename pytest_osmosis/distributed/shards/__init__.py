"""Rollouts that shards run elsewhere, for a session that records and decides here."""
