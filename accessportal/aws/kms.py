"""Signing by a key that never leaves KMS."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.aws.clients import kms_client
from accessportal.aws.errors import Refused, sorted_call

# ECDSA on P-256: what a browser's or a phone's key is, too; KMS signs with it in one call, and any library checks it.
_SPEC = "ECC_NIST_P256"
_ALGORITHM = "ECDSA_SHA_256"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """``arn`` names the key itself, also where it was asked for by an alias. ``der`` is its public half."""

    arn: str
    der: bytes


def read_public_key(key: str) -> PublicKey:
    """Of an id, an ARN or an alias. :raises Refused: also for a key of another kind."""
    answer = sorted_call(kms_client().get_public_key, KeyId=key)
    spec, usage = answer.get("KeySpec") or answer["CustomerMasterKeySpec"], answer["KeyUsage"]
    if (spec, usage) != (_SPEC, "SIGN_VERIFY"):
        raise Refused("KeySpec", f"{key} is a key {spec} to {usage}; make one {_SPEC} to SIGN_VERIFY")
    return PublicKey(answer["KeyId"], answer["PublicKey"])


def sign_digest(arn: str, digest: bytes) -> bytes:
    """The signature (DER) of what has this SHA-256."""
    answer = sorted_call(kms_client().sign, KeyId=arn, Message=digest, MessageType="DIGEST", SigningAlgorithm=_ALGORITHM)
    return bytes(answer["Signature"])
