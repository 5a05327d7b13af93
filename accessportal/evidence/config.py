"""What an installation sets for its evidence."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from accessportal.aws import kms
from accessportal.aws.errors import OutsideError, Transient
from accessportal.kernel.errors import NoAnswer, Unavailable
from accessportal.kernel.setting import Setting

LEAST_KEEP_DAYS = 90
"""Events stay for a quarter of a year at least: longer than a restore of the tables reaches back (35 days), and late events come (3)."""
_KEY_BYTES = 32


class Signer(Protocol):
    """Signs digests. ``key_id`` and ``public_key`` (PEM) are of its public half, which auditors get. :raises Unavailable: each of them,
    where the key lies elsewhere and that does not answer."""

    @property
    def key_id(self) -> str: ...
    @property
    def public_key(self) -> str: ...
    def sign(self, content: bytes) -> str: ...


@dataclass(frozen=True, slots=True)
class OwnKey:
    """An Ed25519 key of this process."""

    key: Ed25519PrivateKey

    @property
    def key_id(self) -> str:
        return _short_id(self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @property
    def public_key(self) -> str:
        return _pem(self.key.public_key())

    def sign(self, content: bytes) -> str:
        return base64.b64encode(self.key.sign(content)).decode()


@dataclass(slots=True)
class KmsKey:
    """A key of KMS, by id, ARN or alias; looked up once, so that an alias that is turned to another one counts at the next start."""

    name: str
    _found: kms.PublicKey | None = None

    @property
    def key_id(self) -> str:
        return _short_id(self._look_up().der)

    @property
    def public_key(self) -> str:
        return _pem(self._public())

    def sign(self, content: bytes) -> str:
        """Checked before anybody gets it: nothing is written that auditors would refuse."""
        found = self._look_up()
        with _answered(self.name):
            signature = kms.sign_digest(found.arn, hashlib.sha256(content).digest())
        try:
            self._public().verify(signature, content, ECDSA(SHA256()))
        except InvalidSignature as error:
            words = f"What KMS answered is no signature by {self.name}. Nothing was signed; try again."
            raise Unavailable(words, code="signature_wrong") from error
        return base64.b64encode(signature).decode()

    def _look_up(self) -> kms.PublicKey:
        if self._found is None:
            with _answered(self.name):
                self._found = kms.read_public_key(self.name)
        return self._found

    def _public(self) -> EllipticCurvePublicKey:
        key = load_der_public_key(self._look_up().der)
        assert isinstance(key, EllipticCurvePublicKey)
        return key


@contextmanager
def _answered(name: str) -> Iterator[None]:
    try:
        yield
    except OutsideError as error:
        kind = NoAnswer if isinstance(error, Transient) else Unavailable
        raise kind(
            f"KMS did not sign with {name} ({error}). Look at PORTAL_EVIDENCE_KMS_SIGNING_KEY.", code="signing_unavailable"
        ) from error


def _short_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:16]


def _pem(key: Ed25519PublicKey | EllipticCurvePublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


_signer = Setting[Signer | None](None)
configure, current = _signer.configure, _signer.current


def signer_of(key: str, *, kms_key: str) -> Signer | None:
    """The signer of an installation that has set one of the two, or none."""
    if kms_key:
        return KmsKey(kms_key)
    return read_key(key) if key else None


def read_key(text: str) -> OwnKey:
    """:raises ValueError: for what is no key, without telling it."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise ValueError(f"must be {_KEY_BYTES} bytes in base64, as make_evidence_key makes them")
    return OwnKey(Ed25519PrivateKey.from_private_bytes(raw))


def new_key() -> str:
    """Make a key, as ``PORTAL_EVIDENCE_KEY`` has it."""
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
