"""`--isolated`: the environment of a rollout that has a `pyproject.toml` of its own.

As a platform builds it: uv installs what the project, or its lock, asks for, into a folder of
`.osmosis/environments`. Our own installation is laid under it, and stands for the requirements on
`osmosis-ai` and `pytest-osmosis`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CommandError
from ..eval.lines import tell

if TYPE_CHECKING:
    from pytest_osmosis.features.config_files.config_options import ConfigRun

ENVIRONMENTS = ".osmosis/environments"
_OURS = ("osmosis-ai", "pytest-osmosis")
_PATH_FILE = "osmosis_session.pth"
_SHOWN = 2000
"""Characters of what uv says last."""


def environment_of(run: ConfigRun) -> Path:
    """Return the environment of the rollout, made as its project says; raise CommandError.

    Its name has a digest of the project and the lock: what they ask for no more is not in it.
    """
    project, lock = run.rollout / "pyproject.toml", run.rollout / "uv.lock"
    if not project.is_file():
        raise _refusal(f"{os.path.relpath(project)} is not there; leave --isolated out")
    beside = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    uv = shutil.which("uv", path=beside)
    if uv is None:
        raise _refusal("it needs uv, which is not installed: `python -m pip install uv`")
    digest = hashlib.sha256(sys.version.encode())
    for file in filter(Path.is_file, (project, lock)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    home = run.root / ENVIRONMENTS / f"{run.rollout.name}-{digest.hexdigest()[:12]}"
    tell(f"environment of {run.rollout.name}: {os.path.relpath(home)}")
    for words in _commands(uv, home, project, lock):
        done = subprocess.run(
            words, cwd=run.rollout, stderr=subprocess.PIPE, text=True, errors="replace", check=False
        )
        if done.returncode:
            said = done.stderr.strip()[-_SHOWN:]
            raise _refusal(f"uv cannot make the environment of {os.path.relpath(project)}:\n{said}")
    _lay_on_ours(home)
    return home


def _commands(uv: str, home: Path, project: Path, lock: Path) -> Iterator[list[str]]:
    """Yield the commands that make the environment; of one that is there what is missing."""
    python, wanted = home / "bin" / "python", project
    if not python.exists():
        yield [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(home)]
    if lock.is_file():
        wanted = home / "requirements.txt"
        without = [word for name in _OURS for word in ("--prune", name)]
        yield [
            *(
                uv,
                "export",
                "--quiet",
                "--frozen",
                "--no-default-groups",
                "--no-emit-project",
                "--no-hashes",
            ),
            *(*without, "--output-file", str(wanted)),
        ]
    overrides = home / "overrides.txt"
    overrides.write_text("".join(f'{name} ; python_version < "0"\n' for name in _OURS), "utf-8")
    yield [
        *(uv, "pip", "install", "--quiet", "--python", str(python)),
        *("-r", str(wanted), "--override", str(overrides)),
    ]


def _lay_on_ours(home: Path) -> None:
    """Let it find what this process has installed, behind its own packages."""
    folders = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    folders.append(str(Path(__file__).resolve().parents[2]))
    adding = "; ".join(f"site.addsitedir({folder!r})" for folder in dict.fromkeys(folders))
    [site] = home.glob("lib/python*/site-packages")
    (site / _PATH_FILE).write_text(f"import site; {adding}\n", "utf-8")


def _refusal(message: str) -> CommandError:
    return CommandError(f"--isolated: {message}", code="isolated", status=4)
