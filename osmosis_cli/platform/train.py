"""`osmosis train`: the group of what concerns training runs."""

from __future__ import annotations

from ..lazy_group import Entry, LazyGroup

SUBCOMMANDS = {
    "check": Entry("platform.check:train_check_command", "Check config files of training runs."),
    "schema": Entry(
        "platform.check:train_schema_command", "Print the JSON Schema of such a config file."
    ),
}
EPILOG = """\b
Examples:
  osmosis train check configs/training/my-rollout.toml
  osmosis train schema
"""

train_group = LazyGroup(
    "train", table=SUBCOMMANDS, help="Check what a training run is submitted with.", epilog=EPILOG
)
