"""Rollouts on other machines, as shards of the batch size: `--osmosis-ray`, `--osmosis-shards`.

What runs there, and the session that waits for it, are in `distributed/shards`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...options import values
from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    from ...distributed.shards import Shards
    from ...options.reader import OptionReader

SHARD_KINDS: Mapping[str, tuple[Option, ...]] = {
    "ray": (
        Option(
            "ray",
            "run the rollouts on a Ray cluster: the one at this address, else the one of "
            "RAY_ADDRESS, else one that is started on this machine for the session",
            metavar="ADDRESS",
            const=values.UNNAMED_ADDRESS,
            excludes=("rescore", "otel"),
        ),
        Option(
            "ray-cpus",
            "processors that Ray sets aside for each shard",
            values.number("a number above 0", lambda value: value > 0),
            1.0,
            metavar="X",
            needs=("ray",),
        ),
        Option(
            "ray-env",
            "variable of this machine that shards have too, besides those of keys",
            values.variable,
            metavar="NAME",
            repeatable=True,
            needs=("ray",),
        ),
        Option(
            "ray-runtime-env",
            "Ray's runtime environment of the shards, as YAML or JSON: pip, conda, a container, "
            "etc.",
            metavar="FILE",
            is_path=True,
            needs=("ray",),
        ),
    ),
}
"""What asks for each kind of shards, with its address, and the kind's own settings.

`osmosis_executors.table` has what starts processes there, by the same names. A setting begins
with the kind's name; `<kind>-env` names variables that processes have too.
"""

_OPTIONS = (
    *(option for options in SHARD_KINDS.values() for option in options),
    Option(
        "shards",
        "split the rows over K processes of the cluster, at most one for each of the batch size "
        "(default: as many as it has room for)",
        values.whole_number(1),
        metavar="K",
        needs=tuple(SHARD_KINDS),
    ),
)


def _kind(given: OptionReader) -> str | None:
    return next((kind for kind in SHARD_KINDS if given.raw(kind) is not None), None)


def _read(given: OptionReader) -> Shards | None:
    kind = _kind(given)
    if kind is None:
        return None
    from ...distributed.shards import Shards

    settings = {
        option.name.removeprefix(f"{kind}-").replace("-", "_"): given(option.name)
        for option in SHARD_KINDS[kind][1:]
    }
    return Shards(kind, address=given(kind), count=given("shards"), settings=settings)


SHARDS = FeatureEntry(
    "shards",
    [OptionSet("a cluster", _OPTIONS, after="limits")],
    read=_read,
    runs_elsewhere=lambda given: _kind(given) is not None,
)
