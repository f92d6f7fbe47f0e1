"""Not here, unlike in osmosis-ai 0.3: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.controller is not part of pytest-osmosis: "
    "`osmosis eval CONFIG` runs the rollouts itself, with the model behind an address on loopback"
)
