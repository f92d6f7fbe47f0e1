"""A platform to host yourself: takes submitted runs, datasets and secrets, and keeps them.

Speaks the API that the `osmosis` command speaks. Executes submitted evaluations.
PYTEST_DONT_REWRITE: no assert of ours is rewritten.
"""
