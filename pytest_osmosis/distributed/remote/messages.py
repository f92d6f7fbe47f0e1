"""What the driver of a cluster and its shards say to each other: a kind, and values of JSON."""

from __future__ import annotations

from typing import Any

Message = tuple[str, list[Any]]
"""A kind and its values."""

# From the driver to a shard.
BEGIN = "begin"
"""The runs that are to be made, in order: suite, row and run of each, one list of numbers;
the window; and how many of them are made one at a time at first."""
WINDOW = "window"
"""So many rollouts may be in flight."""
HALT = "halt"
"""Start nothing more, for this reason."""
HOLD = "hold"
"""Send nothing for so many seconds: another shard was refused."""
CANCEL = "cancel"
"""Cancel what is in flight, and end. Also when the driver is gone."""

# From a shard to the driver.
LOADED = "loaded"
"""Digests of the files that it has loaded, by suite and name."""
FINISHED = "finished"
"""A run: its lines as they are kept, sections of output."""
PACE = "pace"
"""The endpoint limits the rate, or has answered again: kind, seconds to wait."""
WARNING = "warning"
"""What user code does to the session: the fields of `CodeWarning`."""
GAVE_UP = "gave up"
"""Why the process ends although no run of its is at fault any more."""
PROBLEM = "problem"
"""Why nothing can be run, or anything more."""
DONE = "done"
"""Every run has ended that is to be made."""
