"""The commands of uv that make an environment, and its inputs. Pure."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uv import find_uv_bin

from .installed import OURS, Installed
from .project import Project, Wanted

_FORMAT = 2
"""Of environments: what another one has built is not taken."""
REQUIREMENTS = "requirements.txt"
_CONSTRAINTS = "constraints.txt"
_OVERRIDES = "overrides.txt"
_NEVER = 'python_version < "0"'
_PATH_FILE = "osmosis_platform.pth"
_WRITE_LINE = """\
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), sys.argv[1]).write_text(sys.argv[2], "utf-8")
"""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What the operator has set for builds."""

    find_links: tuple[Path, ...] = ()
    """Folders of wheels."""
    use_index: bool = True
    index_url: str | None = None
    """Instead of what uv is configured for."""
    uv: str = field(default_factory=find_uv_bin)
    """The program; by default that of the installed package."""
    time_s: float = 1800.0
    """For a build."""
    kept: int = 20
    """Environments that are kept though no run uses them."""
    download_bytes: int = 4 * 1024**3
    """Of what a workspace's builds have downloaded; what is more is removed as a whole."""

    @property
    def words(self) -> list[str]:
        """The options that say where packages come from."""
        return [
            *([] if self.use_index else ["--no-index"]),
            *(["--index-url", self.index_url] if self.index_url else []),
            *(f"--find-links={folder}" for folder in self.find_links),
        ]


def environment_key(
    workspace_id: str, project: Project, own: Installed, settings: BuildSettings, commit: str
) -> str:
    """Return what names an environment: the digest of everything that it is built from.

    A workspace shares none with another: what it is built from may be its own.
    """
    digest = hashlib.sha256()
    material = {
        "format": _FORMAT,
        "workspace": workspace_id,
        "python": [sys.version, sys.platform, sys.prefix],
        "installed": dict(sorted(own.versions.items())),
        "options": settings.words,
        "commit": commit if project.is_local else None,
    }
    for part in (json.dumps(material).encode(), project.text, project.lock or b""):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:32]


class Recipe:
    """How one environment is made, of lists in its home; the commands write into `scratch`."""

    def __init__(
        self, home: Path, uv: str, settings: BuildSettings, downloads: Path, scratch: Path
    ) -> None:
        self.home = home
        self.uv = uv
        self.settings = settings
        self.downloads = downloads
        self.venv = scratch / "environment"
        """Where it is built; it works in another folder too."""
        self.python = self.venv / "bin" / "python"
        self.exported = scratch / "exported.txt"
        """The list of what a lock pins."""
        self.variables = {
            "UV_CACHE_DIR": str(downloads / "uv"),
            "UV_LINK_MODE": "copy",  # no file of it is another environment's too
            "UV_PYTHON_DOWNLOADS": "never",
            "NO_COLOR": "1",
        }
        """Further variables of the commands: no question, no colour, no other Python."""

    def make_venv(self) -> list[str]:
        """Return the command that makes the virtual environment."""
        return [
            *(self.uv, "venv", "--quiet", "--no-project", "--no-config", "--relocatable"),
            *("--python", sys.executable, str(self.venv)),
        ]

    def export(self) -> list[str]:
        """Return the command that lists what a lock pins, without us and what we bring."""
        without = (word for name in sorted(OURS) for word in ("--prune", name))
        return [
            *(self.uv, "export", "--quiet", "--frozen", "--no-default-groups"),
            *("--no-emit-project", "--no-hashes", "--no-annotate", "--no-header", *without),
            *("--output-file", str(self.exported)),
        ]

    def install(self, lists: Sequence[Path]) -> list[str]:
        """Return the command that installs what is in these files."""
        return [
            *(self.uv, "pip", "install", "--no-progress", "--compile-bytecode"),
            *("--python", str(self.python)),
            *(word for path in lists for word in ("-r", str(path))),
            *("-c", str(self.home / _CONSTRAINTS), "--override", str(self.home / _OVERRIDES)),
            *self.settings.words,
        ]

    def write_lists(self, wanted: Wanted, own: Installed) -> None:
        """Write what the commands read."""
        lists = {
            REQUIREMENTS: wanted.requirements,
            _CONSTRAINTS: [*own.ranges, *wanted.constraints],
            _OVERRIDES: [f"{name} ; {_NEVER}" for name in sorted(OURS)],
        }
        for name, lines in lists.items():
            path = self.home / name
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            path.chmod(0o644)

    def lay_on(self, own: Installed) -> list[str]:
        """Return the command that lays it on our own installation: what it has comes first."""
        adding = "; ".join(f"site.addsitedir({str(folder)!r})" for folder in own.folders)
        return [str(self.python), "-I", "-c", _WRITE_LINE, _PATH_FILE, f"import site; {adding}\n"]
