"""`osmosis eval-rubric`: score recorded answers with an LLM judge."""
