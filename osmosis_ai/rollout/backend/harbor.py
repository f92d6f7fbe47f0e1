"""Not here, unlike in osmosis-ai 0.3: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.rollout.backend.harbor is not part of pytest-osmosis: "
    "a rollout runs in a process: an agent that is a program (`cmd:…`) may start a container"
)
