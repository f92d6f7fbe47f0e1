"""The folder of one run in the platform's data: its work tree, its home, what it writes.

data/runs/<id>/source/        the work tree; what the commit was is in `commit`
data/runs/<id>/datasets/      the dataset, or a link to it, by the name that users know
data/runs/<id>/home/, tmp/    of the child processes
data/runs/<id>/kept/          the journal, from which an interrupted run resumes
data/runs/<id>/build-output   what the build of its environment printed
data/runs/<id>/output         what pytest printed
data/runs/<id>/results/       of it, with the JSON report
data/runs/<id>/given          the values of its secrets, encrypted
data/runs/<id>/conversations.jsonl  what it has told of the runs of rows, masked

The folder and the outputs are the platform's; what the child processes write is in folders that may
belong to another user.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

JOURNAL = "journal.jsonl"
_COMMIT = "commit"
_ODD = re.compile(r"[^\w.-]+|^[.-]", re.ASCII)


class RunFolder:
    """The places of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder.parent.parent
        """The platform's."""
        self.source = folder / "source"
        self.datasets = folder / "datasets"
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        self.journal_dir = folder / "kept"
        self.output = folder / "output"
        """The file of what pytest printed."""
        self.build_log = folder / "build-output"
        self.report = folder / "results" / "report.json"
        self.conversations = folder / "conversations.jsonl"
        """What was said, without secrets; there once the run has ended."""
        self.given = folder / "given"
        """The values of its secrets, encrypted: those of earlier attempts may be others."""
        self.trained = folder / "trained"
        """The folder of the trainer, which is kept."""
        self.lock = folder / "lock"
        """The file that is locked while a process of the run lives."""
        self.trainer_lock = folder / "trainer.lock"
        self.written = (self.home, self.temporary, self.journal_dir, self.report.parent)
        """The folders that child processes write into, but for the work tree."""

    @classmethod
    def of_run(cls, data: Path, run_id: str) -> RunFolder:
        """Return the folder of a run; it need not exist."""
        return cls(data.absolute() / "runs" / run_id)

    @property
    def commit(self) -> str | None:
        """The commit whose work tree is whole; None without one."""
        path = self.folder / _COMMIT
        return path.read_text("ascii") if path.exists() else None

    def keep_commit(self, commit: str) -> None:
        """Note that the work tree of this commit is whole."""
        (self.folder / _COMMIT).write_text(commit, "ascii")

    def make(self) -> None:
        """Make the folders, for their owners alone."""
        for folder in (self.folder.parent, self.folder, *self.written):
            folder.mkdir(mode=0o700, exist_ok=True)

    def let_in(self) -> None:
        """Let another user go to the folders that are its own; none can be listed."""
        for folder in (self.data, self.folder.parent, self.folder):
            folder.chmod(0o711)

    def put_dataset(self, rows: Path, name: str, *, copied: bool) -> Path:
        """Give the file of the dataset its name; return the path relative to the work tree."""
        here = self.datasets / f"{_ODD.sub('-', name)}{rows.suffix}"
        self.datasets.mkdir(mode=0o700, exist_ok=True)
        here.unlink(missing_ok=True)
        if copied:
            here.touch(mode=0o600)
            shutil.copyfile(rows, here)
        else:
            here.symlink_to(rows)
        return Path("..") / here.relative_to(self.folder)

    def journal(self) -> Path | None:
        """Return the journal that was written last, once there is one."""
        found = self.journal_dir.glob(f"*/{JOURNAL}")
        written = (path for path in found if not path.parent.is_symlink())
        return max(written, key=lambda path: path.lstat().st_mtime, default=None)

    def has_begun(self) -> bool:
        """Return whether an earlier attempt has written a journal."""
        return self.journal() is not None

    def clean(self) -> None:
        """Remove everything but the journal, the output and the report."""
        for file in (self.folder / _COMMIT, self.given):
            file.unlink(missing_ok=True)
        for folder in (self.source, self.home, self.temporary, self.datasets):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Remove everything but what a trainer has left."""
        for path in [*self.folder.iterdir()]:
            if path == self.trained and any(path.iterdir()):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
