"""The groups in which help and documentation list the options.

Names alone, those of reports from their table: every pytest session imports this. `table` has the
options themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..reports.formats import REPORTS

FIRST = "what is evaluated"
GROUPS: Mapping[str, tuple[str, ...]] = {
    FIRST: (
        "agent", "grader", "data", "map", "eval-fn", "n", "pass-threshold", "limit", "offset",
        "rows", "sample", "sample-seed", "shard", "only", "run",
    ),
    "the model": (
        "model", "base-url", "api-key-env", "api-key", "price-per-mtok", "pass-env",
        "env-file",
    ),
    "sampling": ("temperature", "top-p", "max-tokens", "seed"),
    "limits": (
        "batch-size", "max-turns", "agent-timeout", "grader-timeout", "max-cost",
        "max-total-tokens", "max-time", "worker-timeout",
    ),
    "a cluster": ("ray", "shards", "ray-cpus", "ray-env", "ray-runtime-env"),
    "gates": ("gate", "confidence", "stop-when-decided"),
    "the baseline": (
        "baseline", "baseline-model", "baseline-base-url", "baseline-api-key-env",
        "baseline-price-per-mtok",
    ),
    "reports": (
        "by", *(report.option for report in REPORTS), "trajectories", "no-answers", "debug-dir",
    ),
    "resuming": (
        "resume", "extend", "fresh", "retry-failed", "rescore", "inputs", "run-dir", "no-journal",
    ),
}  # fmt: skip
"""Names of options by the title of their group, in the order in which help lists them."""

_GROUP_OF = {name: title for title, names in GROUPS.items() for name in names}


def in_groups(names: Collection[str]) -> dict[str, list[str]]:
    """Return these names by the titles of their groups, all in the order of help."""
    groups = {title: [name for name in listed if name in names] for title, listed in GROUPS.items()}
    groups[FIRST] += [name for name in names if name not in _GROUP_OF]
    return groups


def group_of(name: str) -> str:
    """Return the title of an option's group: `FIRST`, unless it is in another."""
    return _GROUP_OF.get(name, FIRST)
