"""What runs an evaluation for somebody else: one interface, and child processes of this machine.

PYTEST_DONT_REWRITE: no assert of ours is rewritten.
"""
