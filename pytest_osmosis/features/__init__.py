"""Features: each brings its options, its part of the spec and what it does at the four seams.

`table` lists them, and nothing else names them; the seams are `session/seams.py`.
"""
