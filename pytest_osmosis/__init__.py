"""The pytest plugin: evaluation of LLM agents as a test suite.

PYTEST_DONT_REWRITE: no assert of ours is rewritten, installed or editable.
"""
