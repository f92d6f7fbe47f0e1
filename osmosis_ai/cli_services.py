"""Not here, unlike in osmosis-ai 0.2: the error says what takes its place."""

raise ModuleNotFoundError(
    "osmosis_ai.cli_services is not part of pytest-osmosis: `osmosis eval-rubric -r ID -d FILE` "
    "scores records by a rubric file, and osmosis_ai.evaluate_rubric a text"
)
