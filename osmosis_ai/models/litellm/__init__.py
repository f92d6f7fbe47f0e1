"""LiteLLM's providers; the only room that imports LiteLLM, and only when a model needs it."""

from collections.abc import Callable

filter_renewals: list[Callable[[], None]] = []
"""To be called whenever warning filters were reset; empty until LiteLLM is imported."""
