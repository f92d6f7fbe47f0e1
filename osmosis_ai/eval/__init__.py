"""The import path that workspaces use: `osmosis_ai.eval.rubric`."""
