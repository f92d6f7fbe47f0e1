"""What is kept of one evaluation: what was asked, its sessions, and every run that has ended.

    journal.jsonl             the header; a line for every session, and for the end of one that was
                              not cut short; the runs of the process that reports; the
                              verdict on them, with that of each gate
    workers/0001-gw0.jsonl    the runs of a worker of the first session

Each file has one process that appends to it (`run_log`; the lines of a run are in `run_lines`). Of
several results of one run the last one counts. A torn line at the end of a file is what an
interrupted write leaves. How they are read is in `replay`; what makes an evaluation the same in
`fingerprint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .atomic_write import write_whole
from .excerpt import encode
from .group_sync import AppendFile
from .run_lines import add_checksum

if TYPE_CHECKING:
    from ..suite_results import SuiteResult

FORMAT = 2
FILE = "journal.jsonl"
WORKERS = "workers"


def create(folder: Path, header: Mapping[str, Any], session: Mapping[str, Any]) -> None:
    """Make a journal with its first two lines, or none at all."""
    lines = add_checksum(encode({"osmosis_journal": FORMAT, **header})) + session_line(session)
    write_whole(folder / FILE, lines, mode=0o600)


def session_line(session: Mapping[str, Any]) -> bytes:
    """The line that begins a session."""
    return add_checksum(encode({"session": session}))


def verdict_line(suite: SuiteResult, git: Mapping[str, Any] | None = None) -> bytes:
    """The line of what the runs that are in the journal came to."""
    from ..verdicts import gate_fields

    gates = [gate_fields(result) for result in suite.verdicts]
    info = suite.info
    by = {"column": info.cluster_column, "rows": dict(info.clusters)} if info.clusters else {}
    found = {"gates": gates, "verdict": suite.state, "git": git, "clusters": by}
    return add_checksum(encode(found))


def end_line() -> bytes:
    """The line that ends a session that was not cut short."""
    return add_checksum(encode({"session_ended": True}))


def begin_session(folder: Path, session: Mapping[str, Any]) -> None:
    """Append the line of a session, and return once it is on disk."""
    file = AppendFile(folder / FILE)
    try:
        file.write(session_line(session))
        file.sync()
    finally:
        file.close()


def worker_file(folder: Path, session: int, worker: str) -> Path:
    """Return where a worker of a session keeps its runs."""
    return folder / WORKERS / f"{session:04}-{worker}.jsonl"


def worker_files(folder: Path, session: int | None = None) -> list[Path]:
    """Return the files of workers, in the order in which these were started."""
    pattern = "[0-9]*" if session is None else f"{session:04}"
    paths = (folder / WORKERS).glob(f"{pattern}-*.jsonl")
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def files_of(folder: Path) -> list[Path]:
    """Return all files of an evaluation."""
    return [folder / FILE, *worker_files(folder)]
