"""Cursors: the last evaluated key of a query, signed together with the name of the query that it continues."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from accessportal.kernel.errors import InvalidRequest

_secret: bytes | None = None
_SIGNATURE_BYTES = 16


def configure_cursors(secret: str) -> None:
    """Set the key that cursors are signed with (from the installation's secret)."""
    global _secret
    _secret = hashlib.sha256(b"accessportal.store.cursors:" + secret.encode()).digest()


def sign_cursor(pattern: str, key: dict[str, Any] | None) -> str | None:
    """An opaque string for ``key`` that only ``pattern`` accepts back; ``None`` for ``None`` (the last page)."""
    if key is None:
        return None
    body = json.dumps(key, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(_signature(pattern, body) + body).decode().rstrip("=")


def read_cursor(pattern: str, cursor: str | None) -> dict[str, Any] | None:
    """The key in ``cursor``.

    :raises InvalidRequest: when it was not signed here, or for another pattern.
    """
    if cursor is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raw = b""
    signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not body or not hmac.compare_digest(signature, _signature(pattern, body)):
        raise InvalidRequest(
            "This page address is damaged or not from here. Start again from the first page.", code="cursor_forged", field="cursor"
        )
    key: dict[str, Any] = json.loads(body)
    return key


def _signature(pattern: str, body: bytes) -> bytes:
    if _secret is None:
        raise RuntimeError("configure_cursors() has not been called")
    return hmac.new(_secret, pattern.encode() + b"\0" + body, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
