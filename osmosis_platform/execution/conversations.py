"""What was said in a run, where this machine has it; without the values of the run's secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.orm import Session

from osmosis_ai.secret import Redactor

from ..database.models import Run
from ..vault.cipher import Vault
from ..vault.records import resolve
from .growing_file import open_written
from .room import Room

_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is no conversation: it and what follows it is left out."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """A file of conversations, a line of JSON for each run of a row; read once."""

    file: BinaryIO
    redact: Redactor = field(repr=False)

    @property
    def size(self) -> int:
        """Its bytes."""
        return os.fstat(self.file.fileno()).st_size

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, and close the file."""
        with self.file:
            while (line := self.file.readline(_LINE_BYTES)) and len(line) < _LINE_BYTES:
                yield self.redact(line.decode("utf-8", "replace")).encode("utf-8", "replace")


def open_conversations(
    session: Session, vault: Vault, data: Path, run: Run
) -> Conversations | None:
    """Return the conversations of a run; None where there are none, or not any more."""
    from pytest_osmosis.reports.saved_conversations import beside

    try:
        file = open_written(beside(Room.of_run(data, run.id).report))
    except FileNotFoundError:
        return None
    names = run.submission.get("secrets", {}).get("required", [])
    secrets, _ = resolve(session, vault, run.workspace_id, run.creator_id, names)
    return Conversations(file, Redactor(secrets))
