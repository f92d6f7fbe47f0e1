"""What people say of runs, and how far eval functions agree with it.

No session knows of it: people mark runs in `osmosis eval view`.
"""
