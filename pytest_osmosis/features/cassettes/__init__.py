"""Recorded model calls: `--osmosis-record` and `--osmosis-replay`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...options import values
from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    from pathlib import Path

    from ...options.reader import OptionReader


@dataclass(frozen=True, slots=True)
class CassetteSpec:
    """Where model calls are recorded, or replayed from."""

    folder: Path
    replays: bool = False
    asks_missing: bool = False
    """What is not recorded is asked, and recorded."""
    given: str = ""
    """The folder as it was given."""

    @property
    def is_complete(self) -> bool:
        """Whether every call is answered from the folder."""
        return self.replays and not self.asks_missing


def _read(given: OptionReader) -> CassetteSpec | None:
    folder = given("replay") or given("record")
    if folder is None:
        return None
    return CassetteSpec(
        folder,
        replays=bool(given("replay")),
        asks_missing=given("replay-missing") == "ask",
        given=given.raw("replay") or "",
    )


CASSETTES = FeatureEntry(
    "cassettes",
    [
        OptionSet(
            "recorded calls",
            (
                Option(
                    "record",
                    "write every model call and judge's call, with its answer, into this folder",
                    metavar="DIR",
                    is_path=True,
                    excludes=("replay",),
                ),
                Option(
                    "replay",
                    "answer model calls and judges' calls from this folder: nothing is sent, no "
                    "key is needed",
                    metavar="DIR",
                    is_path=True,
                ),
                Option(
                    "replay-missing",
                    "what becomes of a call that is not recorded: 'error' ends its run, 'ask' "
                    "sends it and records the answer",
                    values.one_of("error", "ask"),
                    "error",
                    metavar="error|ask",
                    needs=("replay",),
                ),
            ),
        )
    ],
    read=_read,
    feature="Cassettes",
)
