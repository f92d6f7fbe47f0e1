"""`osmosis serve`: an agent loop for a trainer."""
