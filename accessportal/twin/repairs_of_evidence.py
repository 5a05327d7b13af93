"""Faults of moto's S3 and KMS that would let evidence pass which AWS would not."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable
from typing import Any

import moto.kms.utils
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from moto.kms.responses import KmsResponse
from moto.moto_api._internal import mock_random
from moto.s3.exceptions import AccessDeniedByLock
from moto.s3.models import S3Backend

_SEED_BITS = 248


@functools.cache
def repair_evidence() -> None:
    """What S3 has locked stays so; KMS signs what was hashed already, and has the same keys after a restart of the twin."""
    backend: Any = S3Backend
    backend.put_object_retention = _only_longer(backend.put_object_retention)
    response: Any = KmsResponse
    response.sign = _signed_as_asked(response.sign)
    key: Any = moto.kms.utils.ECDSAPrivateKey
    key.__init__ = _made_again(key.__init__)


def _only_longer(put: Callable[..., None]) -> Callable[..., None]:
    """moto lets anybody take a lock of the compliance mode away, or make it shorter."""

    def put_object_retention(
        self: Any, bucket_name: str, key_name: str, version_id: str | None, retention: tuple[str | None, str | None]
    ) -> None:
        held = self.get_object(bucket_name, key_name, version_id=version_id)
        is_held = held is not None and held.lock_mode == "COMPLIANCE" and held.is_locked(governance_bypass=False)
        if is_held and (retention[0] != "COMPLIANCE" or (retention[1] or "") < held.lock_until):
            raise AccessDeniedByLock
        put(self, bucket_name, key_name, version_id=version_id, retention=retention)

    return put_object_retention


def _signed_as_asked(sign: Callable[[Any], str]) -> Callable[[Any], str]:
    """moto hashes once more what it is told to be a hash."""

    def signed(self: Any) -> str:
        told: dict[str, str] = json.loads(sign(self))
        if self._get_param("MessageType") != "DIGEST" or told["SigningAlgorithm"] != "ECDSA_SHA_256":
            return json.dumps(told)
        key = self.kms_backend.describe_key(self._get_param("KeyId")).private_key.private_key
        signature = key.sign(self._get_param("Message"), ec.ECDSA(Prehashed(SHA256())))
        return json.dumps(told | {"Signature": base64.b64encode(signature).decode()})

    return signed


def _made_again(init: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    """moto's keys are of the machine's own chance, so that a journal that is read back would make others."""

    def made(self: Any, key_spec: str) -> None:
        init(self, key_spec)
        self.private_key = ec.derive_private_key(1 + mock_random.getrandbits(_SEED_BITS), self.private_key.curve)

    return made
