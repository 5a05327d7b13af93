"""How often passwords may be tried. They work in the demo alone, which is one web process: its memory is enough to count in."""

from __future__ import annotations

import hashlib

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest

from accessportal.kernel.actors import fold_email
from accessportal.kernel.addresses import client_address, network_of

WINDOW_SECONDS = 300
# From one address: for one person, and for all of them together.
MOST_FOR_A_PERSON = 10
MOST_FOR_ALL = 50


def is_too_often(request: HttpRequest, *, email: str) -> bool:
    """Count one more try of ``email``'s password from where ``request`` comes; whether it is one too many to be looked at."""
    return _count(_key(request)) > MOST_FOR_ALL or _count(_key(request, email)) > MOST_FOR_A_PERSON


def forgive(request: HttpRequest, *, email: str) -> None:
    """The password was right: this try counts for nothing, and those before it for their person neither."""
    cache.delete(_key(request, email))
    _count(_key(request), by=-1)


def _key(request: HttpRequest, email: str = "") -> str:
    """A digest: what was typed may be no key."""
    sender = network_of(client_address(request.META, trusted_proxies=settings.TRUSTED_PROXIES))
    return "sign_in:" + hashlib.sha256(f"{sender} {fold_email(email)}".encode()).hexdigest()


def _count(key: str, *, by: int = 1) -> int:
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        return cache.incr(key, by)
    except ValueError:
        # The window ended in between.
        return by
