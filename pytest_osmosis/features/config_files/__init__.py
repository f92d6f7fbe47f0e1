"""A config file of a submitted evaluation among the arguments: `pytest configs/eval/X.toml`."""
