"""Why a build failed, in one sentence: what uv or pip says last. Pure."""

from __future__ import annotations

import re

_LAST_LINES = 3
_MAX_LENGTH = 800
_UV = re.compile(r"^(?:error: | {1,2}× )(?P<told>.+(?:\n(?: {2}|\s*[├╰│]).*)*)", re.MULTILINE)
_UV_CAUSE = re.compile(r"(?::?\s*)(?:cause:|├─▶|╰─▶|│)\s*")
_PIP = re.compile(r"^ERROR: (?!ResolutionImpossible)(.+)", re.MULTILINE)
_PIP_WANTS = re.compile(r"^ {4}(.+)", re.MULTILINE)
_PIP_CONFLICT = "The conflict is caused by:"


def reason(printed: str) -> str:
    """Return the reason that the output of a build ends with."""
    found = _of_uv(printed) or _of_pip(printed) or _last_lines(printed)
    return found if len(found) <= _MAX_LENGTH else f"{found[:_MAX_LENGTH]}…"


def _of_uv(printed: str) -> str | None:
    found = [*_UV.finditer(printed)]
    if not found:
        return None
    parts = _UV_CAUSE.split(found[-1]["told"])
    texts = [text for part in parts if (text := " ".join(part.split()).rstrip("."))]
    return ": ".join(texts)


def _of_pip(printed: str) -> str | None:
    found = _PIP.findall(printed)
    if not found:
        return None
    told = str(found[-1]).strip().rstrip(".")
    _, conflict, rest = printed.rpartition(_PIP_CONFLICT)
    wants = _PIP_WANTS.findall(rest.split("\n\n")[0]) if conflict else []
    return ": ".join([told, "; ".join(wants)]) if wants else told


def _last_lines(printed: str) -> str:
    lines = [text for line in printed.splitlines() if (text := line.strip())]
    return " / ".join(lines[-_LAST_LINES:]) or "it printed nothing"
