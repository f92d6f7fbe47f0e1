"""The style sheet, the script and the icon: files in `static/`, their URL with a digest of them.

The style sheet begins with the theme of the report's page, so both look alike.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pytest_osmosis.reports.page_assets import FOLDER

from ..errors import Refused

_TYPES = MappingProxyType(
    {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
)
_CONTENTS = {
    name: (files(__package__) / "static" / name).read_text("utf-8").encode() for name in _TYPES
}
_CONTENTS["page.css"] = (FOLDER / "theme.css").read_bytes() + _CONTENTS["page.css"]
_FOREVER = "public, max-age=31536000, immutable"


def static_url(name: str) -> str:
    """Return the URL of a file; another one when the file has changed, so browsers keep it."""
    return f"/static/{name}?v={hashlib.sha256(_CONTENTS[name]).hexdigest()[:12]}"


async def static_file(request: Request) -> Response:
    """Answer with a file."""
    name = request.path_params["name"]
    if name not in _CONTENTS:
        raise Refused(404, "not_found", "there is no such file")
    kept = _FOREVER if "v" in request.query_params else "no-cache"
    return Response(_CONTENTS[name], media_type=_TYPES[name], headers={"Cache-Control": kept})


STATIC = [Route("/static/{name}", static_file, methods=["GET"])]
