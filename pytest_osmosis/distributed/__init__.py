"""xdist: how many workers, which items each runs, and what they and the controller tell each other.

The only room that knows xdist and execnet.
"""
