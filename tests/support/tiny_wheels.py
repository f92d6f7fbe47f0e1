"""Wheels of one module, written by a test: packages that no index has."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), code: str | None = None
) -> Path:
    """Write the wheel of a package whose one module has VERSION, or this code."""
    folder.mkdir(exist_ok=True)
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    files = {
        f"{name}.py": code or f"VERSION = {version!r}\n",
        f"{name}-{version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        ),
        f"{name}-{version}.dist-info/WHEEL": _WHEEL,
    }
    record = f"{name}-{version}.dist-info/RECORD"
    lines = "".join(f"{path},,\n" for path in (*files, record))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, text in {**files, record: lines}.items():
            wheel.writestr(inner, text)
    return path


def write_sdist_that_runs(folder: Path, name: str, code: str) -> Path:
    """Write a source package whose build runs this code, and needs nothing."""
    import io
    import tarfile

    folder.mkdir(exist_ok=True)
    files = {
        "pyproject.toml": (
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            f'[project]\nname = "{name}"\nversion = "1.0"\n'
        ),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "backend.py": f"{code}\ndef build_wheel(*args):\n    raise SystemExit(3)\n",
    }
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as sdist:
        for inner, text in files.items():
            about = tarfile.TarInfo(f"{name}-1.0/{inner}")
            about.size = len(text.encode())
            sdist.addfile(about, io.BytesIO(text.encode()))
    return path
