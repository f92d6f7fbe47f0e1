"""`--isolated`: the environment of a rollout that has a `pyproject.toml` of its own.

uv installs what the project asks for into `.osmosis/environments/NAME`; our own installation is
laid under it, and stands for the requirements on `osmosis-ai` and `pytest-osmosis`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CommandError
from ..eval.lines import tell

if TYPE_CHECKING:
    from pytest_osmosis.features.config_files.config_run import ConfigRun

ENVIRONMENTS = ".osmosis/environments"
_OURS = ("osmosis-ai", "pytest-osmosis")
_PATH_FILE = "osmosis_session.pth"
_SHOWN = 2000
"""Characters of what uv says last."""


def environment_of(run: ConfigRun) -> Path:
    """Return the environment of the rollout, made as its project says; raise CommandError."""
    project = run.rollout / "pyproject.toml"
    if not project.is_file():
        raise _refusal(f"{os.path.relpath(project)} is not there; leave --isolated out")
    beside = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    uv = shutil.which("uv", path=beside)
    if uv is None:
        raise _refusal("it needs uv, which is not installed: `python -m pip install uv`")
    home = run.root / ENVIRONMENTS / run.rollout.name
    tell(f"environment of {run.rollout.name}: {os.path.relpath(home)}")
    words = [uv, "sync", "--quiet", "--project", str(run.rollout), "--python", sys.executable]
    words += ["--no-install-project", "--no-dev"]
    words += [word for name in _OURS for word in ("--no-install-package", name)]
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(home)}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(words, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[-_SHOWN:]
        raise _refusal(f"uv cannot make the environment of {os.path.relpath(project)}:\n{said}")
    _lay_on_ours(home)
    return home


def _lay_on_ours(home: Path) -> None:
    """Let it find what this process has installed, behind its own packages."""
    folders = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    folders.append(str(Path(__file__).resolve().parents[2]))
    adding = "; ".join(f"site.addsitedir({folder!r})" for folder in dict.fromkeys(folders))
    [site] = home.glob("lib/python*/site-packages")
    (site / _PATH_FILE).write_text(f"import site; {adding}\n", "utf-8")


def _refusal(message: str) -> CommandError:
    return CommandError(f"--isolated: {message}", code="isolated", status=4)
