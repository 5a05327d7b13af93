"""Django's database, in the states that it may be in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection

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
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(refuse):
        yield
