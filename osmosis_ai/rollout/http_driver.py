"""Not here, unlike in osmosis-ai 0.3: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.http_driver is not part of pytest-osmosis: "
    "`osmosis serve` serves agents to a trainer, `create_rollout_server` workflows"
)
