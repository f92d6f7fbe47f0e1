"""The `osmosis` command: thin click commands over the plugin and the SDK.

PYTEST_DONT_REWRITE: `osmosis eval` is loaded before the pytest session that it starts.
"""
