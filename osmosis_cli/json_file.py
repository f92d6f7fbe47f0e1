"""Results that a command writes as one JSON document: checked before it works, written whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import CommandError, wrong_use


def check_output(path: Path, option: str) -> None:
    """Refuse a file that cannot be written, before anything is run; make its folder."""
    from pytest_osmosis.storage.atomic_write import check_writable

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    except OSError as error:
        raise wrong_use(f"{option} {path}: {error.strerror or error}") from None


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write the document whole, or say that it cannot be written."""
    from pytest_osmosis.storage.atomic_write import write_whole

    text = json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2) + "\n"
    try:
        write_whole(path, text.encode("ascii"))
    except OSError as error:
        told = f"cannot write {path}: {error.strerror or error}"
        raise CommandError(told, code="not_written") from None
