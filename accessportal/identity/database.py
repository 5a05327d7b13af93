"""Django's database when it is away: which errors say so, and what must not come of it."""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError, connection

AWAY = (OperationalError, InterfaceError, InternalError)
"""It does not answer, breaks off, or takes no writes (a PostgreSQL that others are fed from says so by an ``InternalError``)."""


def let_go() -> None:
    """The next request connects anew: after a fail-over the old connection leads to what is a reader now, and stays good for reading."""
    if not connection.in_atomic_block:
        connection.close()
