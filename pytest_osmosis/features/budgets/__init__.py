"""Budgets of money, tokens and time: `--osmosis-max-cost`, `-max-total-tokens`, `-max-time`."""
