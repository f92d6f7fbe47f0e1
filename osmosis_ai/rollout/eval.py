"""Not here, unlike in osmosis-ai 0.2: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.eval is not part of pytest-osmosis: `osmosis eval` evaluates agents, and "
    "`osmosis test` runs them"
)
