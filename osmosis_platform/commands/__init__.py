"""The commands of `osmosis platform`: serve it, and set it up from a script."""
