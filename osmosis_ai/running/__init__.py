"""Rollouts in flight: their event loop, their window, and the limits of the user's code in them."""
