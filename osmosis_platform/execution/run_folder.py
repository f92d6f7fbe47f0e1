"""The folder of one run in the platform's data: its work tree, its home, what it writes.

data/runs/<id>/source/        the work tree; what the commit was is in `commit`
data/runs/<id>/datasets/      the dataset, or a link to it, by the name that users know
data/runs/<id>/home/, tmp/    of the child processes
data/runs/<id>/kept/          the journal, from which an interrupted run resumes
data/runs/<id>/build-output   what the build of its environment printed
data/runs/<id>/output         what pytest printed
data/runs/<id>/results/       of it, with the JSON report

The folder and the outputs are the platform's; what the child processes write is in folders that may
belong to another user.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

JOURNAL = "journal.jsonl"
_COMMIT = "commit"
_ODD = re.compile(r"[^\w.-]+|^[.-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of a run."""

    folder: Path

    @classmethod
    def of_run(cls, data: Path, run_id: str) -> RunFolder:
        """Return the folder of a run; it need not exist."""
        return cls(data.absolute() / "runs" / run_id)

    @property
    def data(self) -> Path:
        """The platform's data."""
        return self.folder.parent.parent

    @property
    def source(self) -> Path:
        """The work tree."""
        return self.folder / "source"

    @property
    def datasets(self) -> Path:
        """The folder of the dataset."""
        return self.folder / "datasets"

    @property
    def home(self) -> Path:
        """The home directory of the child processes."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """The folder for their temporary files."""
        return self.folder / "tmp"

    @property
    def journal_dir(self) -> Path:
        """The folder in which the evaluation is kept."""
        return self.folder / "kept"

    @property
    def output(self) -> Path:
        """The file of what pytest printed."""
        return self.folder / "output"

    @property
    def build_log(self) -> Path:
        """The file of what the build of its environment printed."""
        return self.folder / "build-output"

    @property
    def report(self) -> Path:
        """The file of the JSON report."""
        return self.folder / "results" / "report.json"

    @property
    def trained(self) -> Path:
        """The folder of the trainer, which is kept."""
        return self.folder / "trained"

    @property
    def lock(self) -> Path:
        """The file that is locked while a process of the run lives."""
        return self.folder / "lock"

    @property
    def trainer_lock(self) -> Path:
        """The file that is locked while the trainer lives."""
        return self.folder / "trainer.lock"

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

    @property
    def written(self) -> tuple[Path, ...]:
        """The folders that child processes write into, but for the work tree."""
        return self.home, self.temporary, self.journal_dir, self.report.parent

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
        written = self.journal_dir.glob(f"*/{JOURNAL}")
        return max(written, key=lambda path: path.stat().st_mtime, default=None)

    def has_begun(self) -> bool:
        """Return whether an earlier attempt has written a journal."""
        return self.journal() is not None

    def clean(self) -> None:
        """Remove everything but the journal, the output and the report."""
        (self.folder / _COMMIT).unlink(missing_ok=True)
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
