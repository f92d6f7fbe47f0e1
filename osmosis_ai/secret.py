"""Secrets that do not print, and a redactor that removes them from text.

Knows how a value is written in JSON, URLs, XML, a shell's command line and base64.
Does not know where keys come from nor where text goes: each sink applies a `Redactor` itself.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NoReturn

MASK = "***"
MIN_MASKABLE = 8
"""Shorter secrets are left alone: masking them would shred ordinary text."""

ROLLOUT_KEY_PREFIX = "sk-osmosis-"
"""What the bridge's keys begin with: there are too many of them to be known one by one."""
_ROLLOUT_KEY = re.compile(ROLLOUT_KEY_PREFIX + r"[\w-]{43}")
_ROLLOUT_KEY_BEGUN = re.compile(ROLLOUT_KEY_PREFIX + r"[\w-]{0,42}$")
_ROLLOUT_KEY_ENDED = re.compile(r"^[\w-]{16,53}")
"""What may be the end of a rollout's key: its characters are random."""

_COMMON = frozenset(
    {
        "anything",
        "api-key",
        "api_key",
        "authorization",
        "development",
        "disabled",
        "changeme",
        "change-me",
        "dummy-key",
        "fake-key",
        "lm-studio",
        "localhost",
        "my-api-key",
        "no-key-needed",
        "no-key-required",
        "not-a-key",
        "not-needed",
        "not-required",
        "optional",
        "password",
        "placeholder",
        "postgres",
        "production",
        "required",
        "sk-dummy",
        "sk-no-key-required",
        "test-key",
        "undefined",
        "unused-key",
        "your-api-key",
        "your_api_key",
    }
)


class Secret:
    """A string that shows its name and never its value; `reveal()` is the only way to the value."""

    __slots__ = ("_value", "name")

    name: str
    """Where the value came from, usually an environment variable; printable."""

    def __init__(self, value: str, name: str = "") -> None:
        self._value = value
        self.name = name

    def reveal(self) -> str:
        """The value itself, for the one place that puts it on the wire."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret(name={self.name!r}, ****)" if self.name else "Secret(****)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        import hmac  # only compared in a few places: not worth its import at start

        return hmac.compare_digest(_utf8(self._value), _utf8(other._value))

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret is never pickled: pass the name of its environment variable")


class Redactor:
    """Replaces every known spelling of the given secrets by `***`."""

    __slots__ = ("_spellings", "_together", "_values", "unmaskable")

    unmaskable: list[str]
    """Names of the secrets that are too short or too common to be masked by value."""

    def __init__(self, secrets: Iterable[Secret | None] = ()) -> None:
        """Mask these; None, for a key that was not given, is passed over."""
        self._values: set[str] = set()
        self._spellings: list[str] = []
        self._together: tuple[list[str], list[str], list[str]] | None = None
        """The own spellings, those of the whole process, and both, the longest first."""
        self.unmaskable = []
        for secret in secrets:
            if secret is not None:
                self.add(secret)

    def add(self, secret: Secret) -> None:
        """Mask this secret too, from now on."""
        value = secret.reveal()
        if value in self._values:
            return
        self._values.add(value)
        if not is_maskable(value):
            self.unmaskable.append(secret.name or "(unnamed)")
            return
        found = {*self._spellings, *_spellings(value), *_lines(value)}
        self._spellings = sorted(found, key=_longest_first)

    def __call__(self, text: str) -> str:
        """`text` without any spelling of any secret, and without rollouts' keys."""
        own, others = self._spellings, _everywhere._spellings
        for spelling in self._all() if own and others else own or others:
            if spelling in text:
                text = text.replace(spelling, MASK)
        return _ROLLOUT_KEY.sub(MASK, text) if ROLLOUT_KEY_PREFIX in text else text

    def beginning(self, text: str) -> str:
        """Redact the beginning of a text that continues, and any piece of a secret at its end."""
        redacted = self(text)
        piece = max(map(partial(_piece_at_end, redacted), self._all()), default=0)
        return _ROLLOUT_KEY_BEGUN.sub("", redacted[: len(redacted) - piece])

    def end(self, text: str) -> str:
        """Redact the end of a longer text, and any piece of a secret at its beginning."""
        redacted = self(text)
        piece = max((_piece_at_end(redacted[::-1], s[::-1]) for s in self._all()), default=0)
        return _ROLLOUT_KEY_ENDED.sub("", redacted[piece:])

    def _all(self) -> list[str]:
        own, others = self._spellings, _everywhere._spellings
        if not others:
            return own
        found = self._together
        if found is None or found[0] is not own or found[1] is not others:  # one was added
            found = own, others, sorted({*own, *others}, key=_longest_first)
            self._together = found
        return found[2]

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} secrets)"


def _longest_first(spelling: str) -> tuple[int, str]:
    """Sort key: a spelling that is a part of another must not break that into pieces."""
    return -len(spelling), spelling


_everywhere = Redactor()
_adding = threading.Lock()

redact = Redactor()
"""Masks the secrets of this process, and no others: what sinks call."""


def masked(value: Any) -> Any:
    """Return a JSON value with every part masked by itself, so that it stays JSON."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(name): masked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if redact(repr(value)) == repr(value) else redact(repr(value))
    return value


def mask_everywhere(*secrets: Secret) -> None:
    """Have every redactor of this process mask the secrets from now on; from any thread."""
    with _adding:
        for secret in secrets:
            _everywhere.add(secret)


def _piece_at_end(text: str, spelling: str) -> int:
    """Return how many characters at the end of a text are how the spelling begins."""
    longest = min(len(text), len(spelling) - 1)
    return next((k for k in range(longest, 0, -1) if text.endswith(spelling[:k])), 0)


def is_maskable(value: str) -> bool:
    """Whether replacing `value` everywhere would leave ordinary text readable."""
    if len(value) < MIN_MASKABLE or value.casefold() in _COMMON:
        return False
    return len(set(value)) > 2


def _lines(value: str) -> Iterator[str]:
    """The lines of a value that has several, as a log that is masked line by line shows them."""
    lines = [line.strip() for line in value.splitlines()]
    return filter(is_maskable, lines if len(lines) > 1 else [])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _spellings(value: str) -> Iterator[str]:
    """The ways to write `value` that a report, a log or a URL may hold; never a short one."""
    for spelling in {*_escaped(value), *_encoded(_utf8(value))}:
        if len(spelling) >= MIN_MASKABLE:
            yield spelling


def _escaped(value: str) -> Iterator[str]:
    import html  # these four are needed only once there is a secret: keep them off start-up
    import json
    import shlex
    from urllib.parse import quote

    yield value
    yield value.strip()
    for once in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once)[1:-1]
        yield repr(once)[1:-1]
    for shown in (repr(value), ascii(value)):  # as a traceback or an assertion of pytest has it
        yield shown[1:-1]
    for safe in ("", "/", "/:@!$&'()*+,;=~"):
        quoted = quote(_utf8(value), safe=safe)
        yield from (quoted, _lower_hex(quoted), quoted.replace("%20", "+"))
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield shlex.quote(value).strip("'")


def _encoded(raw: bytes) -> Iterator[str]:
    import base64

    for phase in range(3):
        # The characters that the bytes before and after the secret also shape are left out.
        first = (0, 2, 3)[phase]
        last = (phase + len(raw)) * 8 // 6
        text = base64.b64encode(b"\0" * phase + raw).decode("ascii")[first:last]
        yield text
        yield text.replace("+", "-").replace("/", "_")


def _lower_hex(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def check_api_key(
    value: str, name: str, *, noun: str = "key", whole: str = "the endpoint's API key"
) -> Secret:
    """`value` as a Secret, if it can travel in an HTTP header.

    Raises ValueError with a sentence that names `name` (the variable or option that holds the key)
    and never the value. `noun` and `whole` say what it is.
    """
    if not value.strip():
        raise ValueError(f"{name} is empty: set it to {whole}")
    if "\n" in value or "\r" in value:
        raise ValueError(f"{name} holds a line break: set it to the {noun} alone")
    for position, character in enumerate(value, start=1):
        if "!" <= character <= "~":
            continue
        what = "a space or a control character" if character.isascii() else "a non-ASCII character"
        raise ValueError(
            f"{name} holds {what} at position {position}: copy the {noun} again, from its source "
            f"rather than from a document"
        )
    return Secret(value, name)


def check_token(value: str, name: str) -> Secret:
    """The same for a token of the platform."""
    return check_api_key(value, name, noun="token", whole="a token of the platform")
