"""The key of the platform: secrets are encrypted by it (Fernet), and URLs of uploads signed.

It comes from the environment, or from a file in the data folder that only its owner can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from ..identifiers import new_id

KEY_VARIABLE = "OSMOSIS_PLATFORM_SECRET_KEY"
FILE_NAME = "secret.key"
_OTHER_KEY = (
    f"the stored secrets were encrypted with another key than that of {KEY_VARIABLE} or "
    f"{FILE_NAME}: give the platform the key that it had"
)


class KeyProblem(Exception):
    """A key that cannot be used; a sentence for the operator, without the key."""


class Vault:
    """Encrypts, decrypts and signs."""

    def __init__(self, key: str) -> None:
        try:
            self._fernet = Fernet(key)
        except (ValueError, TypeError):
            raise KeyProblem(
                f"the key is not one of Fernet: 32 bytes in URL-safe base64; make one with "
                f"`{_GENERATE}`"
            ) from None
        self._signing_key = hmac.digest(key.encode("ascii"), b"upload urls", "sha256")

    def __repr__(self) -> str:
        return "Vault(****)"

    def encrypt(self, value: str) -> bytes:
        """Return what is stored of a value."""
        return self._fernet.encrypt(value.encode("utf-8"))

    def decrypt(self, stored: bytes) -> str:
        """Return the value; raise KeyProblem when another key encrypted it."""
        try:
            return self._fernet.decrypt(stored).decode("utf-8")
        except InvalidToken:
            raise KeyProblem(_OTHER_KEY) from None

    def sign(self, text: str) -> str:
        """Return the signature of a text."""
        return hmac.new(self._signing_key, text.encode("utf-8"), hashlib.sha256).hexdigest()

    def is_signature(self, text: str, signature: str) -> bool:
        """Return whether it is the signature of the text."""
        expected = self.sign(text).encode("ascii")
        return hmac.compare_digest(expected, signature.encode("utf-8", "surrogatepass"))


def open_vault(data: Path, key: str | None) -> Vault:
    """Return the vault of a data folder; without a key, by the key file, which is made if needed.

    Raises:
        KeyProblem: when the key, or the file of it, cannot be used.
    """
    return Vault(key if key is not None else _read_or_make(data / FILE_NAME))


def _read_or_make(path: Path) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        _make(path)
    return _read(path)


def _make(path: Path) -> None:
    """Make the file, whole from the first moment on; another process may do so before."""
    own = path.with_name(f"{path.name}.{new_id()}")
    try:
        with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(own, path)
    finally:
        own.unlink(missing_ok=True)


def _read(path: Path) -> str:
    """Return the key in a file; KeyProblem where others can read it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, encoding="ascii") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise KeyProblem(f"{path} can be read by others; make it yours alone: chmod 600")
        return file.read().strip()


_GENERATE = (
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)
