"""The JSON API under `/api/cli`: one table of endpoints, and what each of them does."""
