"""The models that an endpoint lists, for who asked it for one that it does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from difflib import get_close_matches

from yarl import URL

from .errors import CallFault, clip
from .parsing import load_object
from .transport.exchange import ClientClosed, Reply

_SHOWN = 5
_TIMEOUT_S = 10.0
_NAME_CHARS = 80


async def served_instead(model: str, url: str, ask: Callable[..., Awaitable[Reply]]) -> str:
    """Return what to say of the models that a URL lists; empty where it lists none."""
    names: list[str] = []
    with suppress(CallFault, ClientClosed):
        reply = await ask(URL(url, encoded=True), b"", method="GET", timeout_s=_TIMEOUT_S)
        listed = load_object(reply).get("data") if reply.status == 200 else None
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and isinstance(each.get("id"), str):
                names.append(clip(each["id"], _NAME_CHARS))
    if not names:
        return ""
    near = get_close_matches(model, names, n=_SHOWN, cutoff=0.0)
    shown = ", ".join(repr(name) for name in near)
    if len(names) > len(near):
        return f"; of its {len(names):,} models the nearest are {shown}"
    return f"; it serves {shown}"
