"""The base of every item class, and how tables get their name, region and connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pynamodb.connection import Connection
from pynamodb.exceptions import PynamoDBException
from pynamodb.models import Model

from accessportal.kernel.errors import Unavailable


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """``table_prefix`` goes before every table name; ``region`` is the AWS region; seconds are per attempt."""

    table_prefix: str
    region: str
    connect_timeout_seconds: float = 3.0
    read_timeout_seconds: float = 10.0
    max_attempts: int = 4
    max_pool_connections: int = 100


class PortalModel(Model):
    """A row of a table, not the domain: rooms convert it to records in their ``store``.

    ``base_table_name`` is the name in the contract; the prefix comes at start-up through :func:`configure`.
    An update or delete of an item must carry a condition, so this class offers no plain ``save`` to rooms:
    they go through :mod:`accessportal.store.transactions`.
    """

    base_table_name: ClassVar[str]

    class Meta:
        table_name = "unset"


_settings: StoreSettings | None = None
_models: list[type[PortalModel]] = []
_connection: Connection | None = None


def register(model: type[PortalModel]) -> type[PortalModel]:
    """Class decorator: the table of ``model`` is made by ``create_tables`` and gets the configured name and region."""
    _models.append(model)
    if _settings is not None:
        _apply(model, _settings)
    return model


def registered_models() -> tuple[type[PortalModel], ...]:
    """Every table's item class, in the order of import."""
    return tuple(_models)


def configure(settings: StoreSettings) -> None:
    """Give every registered table, present and future, its name and connection. Called once at start-up."""
    global _settings, _connection
    if settings == _settings:
        return
    _settings = settings
    _connection = None
    for model in _models:
        _apply(model, settings)


def connection() -> Connection:
    """The one connection that transactions go through. Created at first use, after :func:`configure`."""
    global _connection
    if _connection is None:
        settings = current_settings()
        _connection = Connection(
            region=settings.region,
            connect_timeout_seconds=settings.connect_timeout_seconds,
            read_timeout_seconds=settings.read_timeout_seconds,
            max_pool_connections=settings.max_pool_connections,
            retry_configuration={"total_max_attempts": settings.max_attempts, "mode": "standard"},
        )
    return _connection


def open_connections() -> None:
    """Every client is made now, one after the other, before the process has threads.

    PynamoDB makes them at first use and without a lock: of sixteen threads that come first each makes all of them, for seconds.
    """
    connections = [connection(), *(model._get_connection().connection for model in _models)]
    for one in connections:
        _ = one.client


def current_settings() -> StoreSettings:
    if _settings is None:
        raise RuntimeError("store.configure() has not been called")
    return _settings


def _apply(model: type[PortalModel], settings: StoreSettings) -> None:
    meta: Any = model.Meta
    meta.table_name = f"{settings.table_prefix}{model.base_table_name}"
    meta.region = settings.region
    meta.connect_timeout_seconds = settings.connect_timeout_seconds
    meta.read_timeout_seconds = settings.read_timeout_seconds
    meta.max_pool_connections = settings.max_pool_connections
    meta.retry_configuration = {"total_max_attempts": settings.max_attempts, "mode": "standard"}
    # A connection made before belongs to the former name and region.
    model._connection = None
    for index in model._indexes.values():
        index.Meta.model = model


def unavailable(error: PynamoDBException) -> Unavailable:
    """The kernel's word for a store that did not answer or refused for a reason that is not the caller's."""
    code = getattr(error, "cause_response_code", None) or type(error).__name__
    return Unavailable(f"The database did not answer ({code}). Nothing is known to have changed; try again.", code="store_unavailable")
