"""The style sheet, the script and the icon: files in `static/`, their URL with a digest of them.

The style sheet begins with the theme of the report's page, so both look alike, and two scripts are
the report's.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pytest_osmosis.features.html.page_assets import FOLDER

from ..errors import Refused

_TYPES = MappingProxyType({"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"})
_OWN = files(__package__) / "static"
_CONTENTS = {name: (_OWN / name).read_bytes() for name in ("page.css", "page.js", "icon.svg")}
_CONTENTS |= {name: (FOLDER / name).read_bytes() for name in ("diff.js", "text.js")}
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
    headers = {"Cache-Control": _FOREVER if "v" in request.query_params else "no-cache"}
    media_type = _TYPES[name.rpartition(".")[2]]
    return Response(_CONTENTS[name], media_type=media_type, headers=headers)


STATIC = [Route("/static/{name}", static_file, methods=["GET"])]
