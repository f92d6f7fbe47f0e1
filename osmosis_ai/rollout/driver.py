"""Not here, unlike in osmosis-ai 0.3: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.driver is not part of pytest-osmosis: "
    "`pytest` or `osmosis eval CONFIG` runs the rollouts of a workflow"
)
