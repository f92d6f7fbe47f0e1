"""`osmosis dataset`: the datasets of the workspace on the platform."""

from __future__ import annotations

from ..lazy_group import Entry, LazyGroup

EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset list
"""

dataset_group = LazyGroup(
    "dataset",
    table={
        "list": Entry("platform.dataset_list:dataset_list", "List those on the platform."),
        "upload": Entry("platform.dataset_upload:dataset_upload", "Check a file and upload it."),
    },
    help="Look after the datasets of this workspace on the platform.",
    epilog=EPILOG,
)
