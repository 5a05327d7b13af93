"""Web addresses."""

from __future__ import annotations

from urllib.parse import urlsplit

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def is_safe_address(value: str) -> bool:
    """Whether secrets may be sent there: HTTPS, or this machine itself, where a developer's own server may be without it."""
    try:
        address = urlsplit(value)
        host = address.hostname
    except ValueError:
        return False
    return bool(host) and (address.scheme == "https" or (address.scheme == "http" and host in _THIS_MACHINE))
