"""What an installation sets for the audit log: the keys of the hashes, which lie outside the tables."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.kernel.pseudonyms import Pseudonyms
from accessportal.kernel.setting import Setting

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LEAST_BYTES = 32


@dataclass(frozen=True, slots=True)
class AuditKeys:
    """``secrets`` by key id: the first signs new events, all verify; none: events are hashed without a key. ``plain_until``: events
    without a key are believed up to this moment (``None``: where no event with a key is before them in their chain). ``pseudonyms`` stand
    in the hashes in the place of people (``None``: addresses and names do)."""

    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    plain_until: datetime | None = None
    pseudonyms: Pseudonyms | None = None

    @property
    def signing_id(self) -> str:
        """The key of new events; empty: none."""
        return next(iter(self.secrets), "")


_keys = Setting(AuditKeys())
configure, current = _keys.configure, _keys.current


def read_keys(text: str) -> dict[str, bytes]:
    """The keys of ``id:base64, id:base64``, in that order. :raises ValueError: naming the key and the rule, never the secret."""
    keys: dict[str, bytes] = {}
    for number, part in enumerate(filter(None, (one.strip() for one in text.split(","))), start=1):
        key_id, _, encoded = part.partition(":")
        if not _KEY_ID.fullmatch(key_id):
            raise ValueError(
                f"key {number} needs an id of 1 to 32 letters, digits, - or _ and a colon: give id:base64, as rotate_audit_key does"
            )
        if key_id in keys:
            raise ValueError(f"the id {key_id} comes twice: give every key its own")
        try:
            keys[key_id] = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise ValueError(f"the key {key_id} is not base64: make one with rotate_audit_key") from None
        if len(keys[key_id]) < _LEAST_BYTES:
            raise ValueError(f"the key {key_id} is shorter than {_LEAST_BYTES} bytes: make one with rotate_audit_key")
    return keys


def read_pseudonyms(text: str) -> Pseudonyms | None:
    """:raises ValueError: for what is no key, without telling it."""
    if not text:
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _LEAST_BYTES:
        raise ValueError(f"must be {_LEAST_BYTES} bytes in base64: make them with openssl rand -base64 {_LEAST_BYTES}")
    return Pseudonyms(key)


def new_key(now: datetime) -> str:
    """Make a key, as ``PORTAL_AUDIT_KEYS`` has it."""
    return f"k{now:%Y%m%d%H%M%S}:{base64.b64encode(secrets.token_bytes(_LEAST_BYTES)).decode()}"
