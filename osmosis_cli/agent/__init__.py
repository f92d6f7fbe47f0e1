"""`osmosis test`, `validate` and `preview`: an agent without an evaluation."""
