"""What an installation sets for its evidence."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Signer:
    """An Ed25519 key. ``key_id`` is of its public half, which auditors get."""

    key: Ed25519PrivateKey

    @property
    def key_id(self) -> str:
        return hashlib.sha256(self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]

    @property
    def public_key(self) -> str:
        """In PEM."""
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, content: bytes) -> str:
        return base64.b64encode(self.key.sign(content)).decode()


_signer: Signer | None = None


def configure(signer: Signer | None) -> None:
    """Called once at start-up; ``None``: nothing is exported."""
    global _signer
    _signer = signer


def current() -> Signer | None:
    return _signer


def read_key(text: str) -> Signer:
    """:raises ValueError: for what is no key, without telling it."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise ValueError(f"must be {_KEY_BYTES} bytes in base64, as make_evidence_key makes them")
    return Signer(Ed25519PrivateKey.from_private_bytes(raw))


def new_key() -> str:
    """Make a key, as ``PORTAL_EVIDENCE_KEY`` has it."""
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
