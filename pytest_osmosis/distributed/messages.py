"""What processes of one session send each other: a kind, and values of builtins.

The controller and xdist's workers send them as tuples, over an execnet channel beside xdist's own,
which is handed over in `workerinput`; a driver and its shards as JSON. What only one
of the two ways needs says so.
"""

from __future__ import annotations

from typing import Any

INPUT, CHANNEL = "osmosis", "osmosis_channel"
"""Keys in xdist's `workerinput`: a text, and a worker's end of its channel."""


def send(channel: Any, kind: str, *values: Any) -> None:
    """Send a message over an execnet channel; ignored where its other end has exited."""
    try:
        channel.send((kind, *values))
    except OSError:
        return  # xdist itself notices a worker that is gone


# From the process that reports to one that runs rollouts, each with one value.
BEGIN = "begin"
"""A shard: the runs that are to be made, in order: suite, row and run of each, one list of numbers;
the window; and how many of them are made one at a time at first."""
WINDOW = "window"
"""So many rollouts may be in flight."""
COMING = "coming"
"""A worker: indices of the next items, in order."""
CACHED = "cached"
"""A worker: `(index, result as JSON)` of items whose runs need not be run."""
PLACES = "places"
"""A worker: where runs are kept, by suite."""
HALT = "halt"
"""Start nothing more, for this reason."""
HOLD = "hold"
"""Send nothing for so many seconds: another process was refused."""
CANCEL = "cancel"
"""Cancel what is in flight, and end. Also when the other end is gone."""

# From a process that runs rollouts to the one that reports.
LOADED = "loaded"
"""A shard: digests of the loaded files, by suite and name."""
COLLECTED = "collected"
"""A worker: the files that it has loaded, its suites, and the run of each item, as JSON."""
ALIVE = "alive"
"""A worker: the process id, every second."""
REFUSED = "refused"
"""A worker: what is wrong with the evaluation, that the controller has found right."""
BEGUN = "begun"
"""A worker: the first run starts."""
FINISHED = "finished"
"""Of a worker, runs ahead of their reports, a list: of each its index, result as JSON, offset and
size of its lines in the worker's file. Of a shard one run: its lines as they are kept, sections of
output."""
FEATURE = "feature"
"""A shard: the name of a feature, and a text for it, ahead of the run that it belongs to."""
PACE = "pace"
"""The endpoint limits the rate, or has answered again: kind, seconds to wait, what it said,
and which model where."""
WARNING = "warning"
"""A shard: what user code does to the session: the fields of `CodeWarning`."""
PROBLEM = "problem"
"""Why nothing can be run, or anything more."""
GAVE_UP = "gave up"
"""Why this process ends although no run of its is at fault any more."""
DONE = "done"
"""A shard: every run has ended that is to be made."""
