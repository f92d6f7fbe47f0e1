"""The environments that a platform keeps, each in a folder named by what it was built from.

data/environments/<key>/venv/     an environment, which nothing changes
data/environments/<key>/complete  is there once it is whole; what it was then, by digest
data/environments/<key>.lock      held alone to build or remove it, together to use it
data/environments/downloads/<id>/ what the builds of a workspace have downloaded
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..locks import locked, locked_if_free
from .sealing import digest_of, remove

COMPLETE = "complete"
VENV = "venv"
FOLDER = "environments"
DOWNLOADS = "downloads"


@dataclass(frozen=True, slots=True)
class EnvironmentStore:
    """A folder of environments."""

    folder: Path
    kept: int = 20
    """Of those that are not in use, so many that were used last are kept."""

    def downloads(self, workspace_id: str) -> Path:
        """Return the folder for the downloads of a workspace's builds."""
        return self.folder / DOWNLOADS / workspace_id

    @contextmanager
    def used(
        self, key: str, build: Callable[[Path, bool], None], check: Callable[[], None]
    ) -> Iterator[Path]:
        """Have an environment, built first where it is not there; nothing removes it meanwhile.

        Two that want the same one at once build it once. One that was changed since is built again:
        `build` is given whether that is so. What `build` or `check` raises is passed on, and what
        it leaves is never taken for an environment.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)  # another user may run the programs
        home = self.folder / key
        lock = self.folder / f"{key}.lock"
        while True:
            with locked(lock, alone=False, check=check):
                if self._is_whole(home):
                    (home / COMPLETE).touch()
                    yield home
                    return
            with locked(lock, alone=True, check=check):
                if not self._is_whole(home):
                    self._build(home, build)

    @staticmethod
    def _is_whole(home: Path) -> bool:
        try:
            return (home / COMPLETE).read_text("ascii") == digest_of(home / VENV)
        except (OSError, ValueError):  # also where a program has made it unreadable
            return False

    @staticmethod
    def _build(home: Path, build: Callable[[Path, bool], None]) -> None:
        was_changed = (home / COMPLETE).exists()
        remove(home)
        home.mkdir()
        home.chmod(0o755)
        try:
            build(home, was_changed)
        except BaseException:
            remove(home)
            raise
        (home / COMPLETE).write_text(digest_of(home / VENV), "ascii")

    def sweep(self) -> None:
        """Remove what was not built to its end, and what is not in use beyond those kept."""
        homes = [each.with_suffix("") for each in self.folder.glob("*.lock")]
        homes.sort(key=_last_use, reverse=True)
        for number, home in enumerate(homes):
            if number < self.kept and (home / COMPLETE).exists():
                continue
            lock = self.folder / f"{home.name}.lock"
            with locked_if_free(lock) as is_free:
                if is_free:
                    remove(home)
                    lock.unlink()


def _last_use(home: Path) -> float:
    try:
        return (home / COMPLETE).stat().st_mtime
    except FileNotFoundError:
        return 0.0
