"""One row through the agent and its scores, within limits; knows no pytest."""
