"""Forms: their fields, and the token without which no form is taken.

The token is a signature of the browser's cookie: another site can make a browser send a form, but
cannot read the cookie, nor the token in the page.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.requests import Request

from ..errors import Refused
from ..http.bodies import read_body
from ..http.endpoints import base_url
from ..vault.cipher import Vault

SESSION_COOKIE = "osmosis_session"
LOGIN_COOKIE = "osmosis_login"
"""Of a browser that shows the login form."""
_FIELDS = 10


def session_cookie(request: Request) -> str:
    """Return the cookie of a browser in which a user may be logged in; empty without one."""
    return request.cookies.get(SESSION_COOKIE, "")


def form_token(vault: Vault, cookie: str) -> str:
    """Return the token for the forms of a browser."""
    return vault.sign(f"form {cookie}")


def token_field(request: Request, cookie: str | None = None) -> Markup:
    """Return the field of a form that has the token; `cookie`: one that the browser is to get."""
    token = form_token(request.app.state.vault, cookie or session_cookie(request))
    return Markup('<input type="hidden" name="token" value="{}">').format(token)


async def read_form(request: Request, cookie_name: str) -> dict[str, str]:
    """Return the fields of a form; refuse one that does not come from our own page."""
    _check_origin(request)
    limits = request.app.state.settings.limits
    body = await read_body(request, limit=limits.form_bytes, timeout_s=limits.body_timeout_s)
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type != "application/x-www-form-urlencoded":
        raise Refused(415, "media_type", "this is not a form")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        raise Refused(400, "invalid_form", "the form cannot be read") from None
    fields = dict(pairs)
    cookie, vault = request.cookies.get(cookie_name, ""), request.app.state.vault
    if not cookie or not vault.is_signature(f"form {cookie}", fields.pop("token", "")):
        raise _foreign()
    return fields


def _check_origin(request: Request) -> None:
    """Refuse what a browser says that another site has sent; an old one says the origin alone."""
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    if site is None and origin is not None:
        ours = (f"//{request.headers['host']}", base_url(request))
        site = "same-origin" if _host(origin) in map(_host, ours) else "cross-site"
    if site not in (None, "same-origin", "none"):
        raise _foreign()


def _host(url: str) -> str:
    return url.partition("//")[2].lower()


def _foreign() -> Refused:
    return Refused(
        403,
        "foreign_form",
        "the form is too old, or not of this platform's own page; open the page again",
    )
