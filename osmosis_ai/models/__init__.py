"""Chat models: what one is (`base`), and the client of OpenAI-compatible HTTP endpoints."""
