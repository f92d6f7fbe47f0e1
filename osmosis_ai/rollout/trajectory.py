"""Not here, unlike in osmosis-ai 0.3: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.trajectory is not part of pytest-osmosis: "
    "conversations are in the file of `--osmosis-trajectories`, beside the JSON report"
)
