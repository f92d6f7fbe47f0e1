"""A key of the driver's for one session: shards know by its certificate to whom they speak.

Needs `cryptography`. The key never leaves the process but for a moment, into a file for OpenSSL.
"""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from .invitation import NAME

_VALID = datetime.timedelta(days=90)
_CLOCKS = datetime.timedelta(days=1)
"""How far the clocks of two machines may be apart."""


def server_context() -> tuple[ssl.SSLContext, str]:
    """Return the context of a server with a new key, and its certificate as PEM."""
    key, certificate = _new_pair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="osmosis-") as folder:  # of mode 0700
        path = Path(folder, "pair.pem")
        path.write_bytes(key + certificate)
        context.load_cert_chain(path)
    return context, certificate.decode("ascii")


def _new_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)
