"""The results as workspaces of Osmosis have them: `--osmosis-metrics`."""
