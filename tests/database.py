"""Django's database, in the states that it may be in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import OperationalError, connection
from psycopg import sql

from tests.settings import ON_POSTGRES


@contextmanager
def taking_no_writes() -> Iterator[None]:
    """Of every connection, the new ones too."""
    name, options = connection.settings_dict["NAME"], connection.settings_dict["OPTIONS"]
    former = options.get("init_command")
    if ON_POSTGRES:
        _execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    else:
        options["init_command"] = f"{former} PRAGMA query_only = ON;"
    connection.close()
    try:
        yield
    finally:
        if ON_POSTGRES:
            _execute("SET default_transaction_read_only = off", f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        else:
            options["init_command"] = former
        connection.close()


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def not_answering() -> Iterator[None]:
    """On PostgreSQL: whoever was connected is thrown out, and nobody is let in."""
    if ON_POSTGRES:
        name = connection.settings_dict["NAME"]
        with psycopg.connect(os.environ["PORTAL_DATABASE_URL"], autocommit=True) as other:
            other.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            try:
                yield
            finally:
                other.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(name)))
                connection.close()
        return

    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(refuse):
        yield
