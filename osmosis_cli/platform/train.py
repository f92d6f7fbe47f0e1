"""`osmosis train`: the group of what concerns training runs."""

from __future__ import annotations

from ..lazy_group import Entry, LazyGroup

SUBCOMMANDS = {
    "submit": Entry("platform.submit:train_submit_command", "Submit a training run."),
    "list": Entry("platform.run_list:train_list_command", "List the submitted training runs."),
    "info": Entry("platform.run_info:train_info_command", "Show a training run."),
    "stop": Entry("platform.run_end:train_stop_command", "End a training run."),
    "delete": Entry("platform.run_end:train_delete_command", "Delete a training run."),
    "logs": Entry("platform.run_logs:train_logs_command", "Print the log of a training run."),
    "check": Entry("platform.check:train_check_command", "Check config files of training runs."),
    "schema": Entry(
        "platform.check:train_schema_command", "Print the JSON Schema of such a config file."
    ),
}
EPILOG = """\b
Examples:
  osmosis train check configs/training/my-rollout.toml
  osmosis train submit configs/training/my-rollout.toml
  osmosis train info calm-otter-17 --watch
"""

train_group = LazyGroup(
    "train",
    table=SUBCOMMANDS,
    help="Submit training runs to a platform, and follow them.",
    epilog=EPILOG,
)
