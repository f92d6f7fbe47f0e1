"""Baselines, candidates, and what differs between them: the whole of comparisons."""
