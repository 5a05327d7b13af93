"""Web addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

# An IPv6 address with an IPv4 one inside it, and a zone.
_LONGEST_ADDRESS = 64
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def is_safe_address(value: str) -> bool:
    """Whether secrets may be sent there: HTTPS, or this machine itself, where a developer's own server may be without it."""
    try:
        address = urlsplit(value)
        host = address.hostname
    except ValueError:
        return False
    return bool(host) and (address.scheme == "https" or (address.scheme == "http" and host in _THIS_MACHINE))


def is_on_this_machine(value: str) -> bool:
    """Whether the address leads nowhere else."""
    try:
        return urlsplit(value).hostname in _THIS_MACHINE
    except ValueError:
        return False


def client_address(headers: Mapping[str, str], *, trusted_proxies: int) -> str:
    """Say who sent a request with these WSGI variables through so many proxies of ours. Each adds to ``X-Forwarded-For`` whom it heard
    from; what stands before our proxies' entries the client may have made up."""
    heard = headers.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", maxsplit=trusted_proxies) if trusted_proxies else []
    told = heard[-trusted_proxies].strip() if len(heard) >= trusted_proxies > 0 else ""
    return told[:_LONGEST_ADDRESS] or headers.get("REMOTE_ADDR", "")


def network_of(address: str) -> str:
    """Return what tries from ``address`` are counted by: of IPv6 its first 64 bits. Empty for no address. Some proxies write the port
    behind it, some servers the zone, and some IPv4 as a part of IPv6."""
    host = address[1:].partition("]")[0] if address.startswith("[") else address.partition(":")[0] if address.count(":") == 1 else address
    try:
        known = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ipaddress.ip_network(f"{known}/64", strict=False))
