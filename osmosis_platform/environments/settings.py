"""Where packages for environments come from, and what a build may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What the operator has set for builds."""

    find_links: tuple[Path, ...] = ()
    """Folders of wheels."""
    use_index: bool = True
    index_url: str | None = None
    """Instead of what pip and uv are configured for."""
    uv: str | None = None
    """The program; None: venv and pip."""
    time_s: float = 1800.0
    """For a build."""
    kept: int = 20
    """Environments that are kept though no run uses them."""
    download_bytes: int = 4 * 1024**3
    """Of what a workspace's builds have downloaded; what is more is removed as a whole."""

    @property
    def words(self) -> list[str]:
        """The options of pip, which uv takes too."""
        return [
            *([] if self.use_index else ["--no-index"]),
            *(["--index-url", self.index_url] if self.index_url else []),
            *(f"--find-links={folder}" for folder in self.find_links),
        ]
