"""The environments that a platform keeps, each in a folder named by what it was built from.

data/environments/<key>/          an environment; it is whole once `complete` is there
data/environments/<key>.lock      held alone to build or remove it, together to use it
data/environments/downloads/<id>/ what the builds of a workspace have downloaded
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..locks import locked, locked_if_free

COMPLETE = "complete"
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
        self, key: str, build: Callable[[Path], None], check: Callable[[], None]
    ) -> Iterator[Path]:
        """Have an environment, built first where it is not there; nothing removes it meanwhile.

        Two that want the same one at once build it once. What `build` or `check` raises is passed
        on, and what it leaves is never taken for an environment.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)  # another user may run the programs
        home = self.folder / key
        lock = self.folder / f"{key}.lock"
        while True:
            with locked(lock, alone=False, check=check):
                if (home / COMPLETE).exists():
                    (home / COMPLETE).touch()
                    yield home
                    return
            with locked(lock, alone=True, check=check):
                if not (home / COMPLETE).exists():
                    self._build(home, build)

    @staticmethod
    def _build(home: Path, build: Callable[[Path], None]) -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        home.chmod(0o755)
        try:
            build(home)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        (home / COMPLETE).touch()

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
                    shutil.rmtree(home, ignore_errors=True)
                    lock.unlink()


def _last_use(home: Path) -> float:
    try:
        return (home / COMPLETE).stat().st_mtime
    except FileNotFoundError:
        return 0.0
