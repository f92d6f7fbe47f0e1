"""Base URLs: the text that a user gave as an address that can be called and printed.

Over plain http to another machine, where others can read along, no key goes that is not named.
Resolves no name and opens nothing. An error message never repeats user names, passwords or query
strings.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote_plus, urlsplit

from ...secret import Secret

DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_HARMLESS = re.compile(r"version|region|deployment|preview|beta")
"""Names in a query whose values are no keys."""
_OF_A_QUERY = "!$%&'()*+,/:;=?@[]~"
"""What stands for itself in a query, beside letters and digits."""
_EXAMPLE = "for example http://localhost:8000/v1"


@dataclass(frozen=True, slots=True)
class BaseURL:
    """An endpoint's address; every part of it but the query is printable."""

    scheme: str
    host: str
    """Lower case, IDNA-encoded, IPv6 without brackets."""
    port: int
    path: str
    """Starts with a slash or is empty; never ends with one."""
    query: str = field(default="", repr=False)
    """Goes with each request, such as `api-version=2024-06-01`; may hold a key."""

    @property
    def netloc(self) -> str:
        """`host`, with the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """`scheme://host:port`."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, in any spelling."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return self.printable()

    def url(self, route: str = "") -> str:
        """Return the address of a route below, with the query; not to be shown."""
        return f"{self.origin}{self.path}{route}{self.query and '?'}{self.query}"

    def printable(self, route: str = "") -> str:
        """Return the same, with the values of the query masked that may be keys."""
        shown = "&".join(map(_shown, self.query.split("&"))) if self.query else ""
        return f"{self.origin}{self.path}{route}{shown and '?'}{shown}"

    @property
    def secrets(self) -> list[Secret]:
        """The values of the query that no output may show."""
        values = [_hidden(part) for part in self.query.split("&")]
        spellings = dict.fromkeys([*values, *map(unquote_plus, values)])
        return [Secret(value, "the query of the base URL") for value in spellings if value]


def normalise_base_url(text: str) -> BaseURL:
    """Return the address: `/v1/`, `/v1/v1` and a pasted `/chat/completions` are all `/v1`.

    A query stays, for each request.

    Raise ValueError with a sentence for the user.
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError(f"the base URL is empty: give the endpoint's address, {_EXAMPLE}")
    if not stripped.isprintable() or any(c in stripped for c in ' \\<>"{}|^`'):
        raise ValueError(
            f"the base URL holds a space, a backslash or another character that no URL has: "
            f"give the endpoint's address, {_EXAMPLE}"
        )
    if "@" in stripped.split("?")[0].split("#")[0]:
        raise ValueError(
            "the base URL holds a user name or a password: leave out everything up to '@' "
            "and put the key into an environment variable"
        )
    if "#" in stripped:
        raise ValueError("the base URL holds a fragment: leave out everything from '#' on")
    return _parsed(stripped)


def split_query(text: str) -> tuple[str, Secret | None]:
    """Return a base URL in its usual form, and its query, which may hold a key; or ValueError."""
    address = normalise_base_url(text)
    query = Secret(address.query, "the query of the base URL") if address.query else None
    return str(replace(address, query="")), query


def is_loopback(host: str) -> bool:
    """Return whether `host` names this machine: localhost, 127.x in any spelling, ::1, 0.0.0.0."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(name))
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified


def is_read_along(url: str) -> bool:
    """Return whether what is sent to `url` can be read on its way; ValueError: no address."""
    address = normalise_base_url(url)
    return address.scheme == "http" and not address.is_loopback


def check_usual_key(provider: str, variable: str, *, naming: str) -> None:
    """Raise ValueError where the provider's address, in a variable too, must not get the key.

    LiteLLM takes such an address, with the key, as it is; `naming` is what the user does to send
    it.
    """
    from ...providers import address_from_environment, host_of  # for providers alone

    address = address_from_environment(provider).strip()
    if address.lower().startswith("http://") and is_read_along(address):
        raise ValueError(
            f"{variable} is not sent over plain http to {host_of(provider)}: {naming} to send it"
        )


def _parsed(text: str) -> BaseURL:
    scheme, separator, rest = text.partition("://")
    shown = text.partition("?")[0]
    if not separator:
        suggestion = f"http://{shown.rstrip(':/')}"
        raise ValueError(f"the base URL {shown!r} has no scheme: write {suggestion}")
    scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"the base URL {shown!r} is neither http:// nor https://")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port
        host = _host(parts.hostname or "")
    except ValueError as error:
        raise ValueError(f"the base URL {shown!r} cannot be read: {error}") from None
    if port == 0:
        raise ValueError(
            f"the base URL {shown!r} has port 0: give the port the endpoint listens on"
        )
    return BaseURL(
        scheme=scheme,
        host=host,
        port=port or DEFAULT_PORTS[scheme],
        path=_path(parts.path),
        query=quote(parts.query, safe=_OF_A_QUERY),
    )


def _shown(part: str) -> str:
    hidden = _hidden(part)
    return f"{part.removesuffix(hidden)}***" if hidden else part


def _hidden(part: str) -> str:
    """Return what may be a key in a part of a query: its value, or all where it has no name."""
    name, separator, value = part.partition("=")
    if not separator:
        return part
    return "" if _HARMLESS.search(name.lower()) else value


def _host(name: str) -> str:
    if ":" in name:
        return str(ipaddress.IPv6Address(name.partition("%")[0]))
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError("its host is not a valid name") from None
    if len(name) > 253 or not _HOST.fullmatch(name) or ".." in name:
        raise ValueError("it has no valid host")
    return _canonical_ipv4(name.lower())


def _canonical_ipv4(name: str) -> str:
    """Return `127.0.0.1` for 127.1, 0x7f.1 and 2130706433, which aiohttp refuses; else `name`."""
    if name.rpartition(".")[2][:1].isdigit():
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(name))
    return name


def _path(path: str) -> str:
    segments = [segment for segment in path.split("/") if segment]
    if segments[-2:] == ["chat", "completions"]:
        del segments[-2:]
    elif segments[-1:] == ["completions"] or segments[-1:] == ["models"]:
        del segments[-1:]
    while len(segments) > 1 and segments[-1] == segments[-2]:
        del segments[-1]  # `/v1/v1`: pasted behind a base that already had it
    return "".join("/" + quote(segment, safe="%:@!$&'()*+,;=~") for segment in segments)
