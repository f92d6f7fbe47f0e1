"""LiteLLM's providers; the only room that imports LiteLLM, and only when a model needs it."""
