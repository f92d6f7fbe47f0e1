"""`osmosis eval` and its subcommands."""
