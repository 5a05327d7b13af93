"""The base of every item class, and how tables get their name, region and connection."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from pynamodb.attributes import Attribute, NumberAttribute
from pynamodb.connection import Connection, TableConnection
from pynamodb.exceptions import PynamoDBException
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

from accessportal.kernel.answers import refuse_garbled
from accessportal.kernel.errors import NoAnswer

# For making connections: PynamoDB makes them at first use and without one.
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """``table_prefix`` goes before every table name; ``region`` is the AWS region; seconds are per attempt.
    ``reads_side_by_side``: how many reads of all pages of this process are sent at the same time where a page needs many."""

    table_prefix: str
    region: str
    connect_timeout_seconds: float = 1.0
    read_timeout_seconds: float = 3.0
    max_attempts: int = 3
    max_pool_connections: int = 100
    reads_side_by_side: int = 1


class PortalModel(Model):
    """A row of a table, not the domain: rooms convert it to records in their ``store``.

    ``base_table_name`` is the name in the contract; the prefix comes at start-up through :func:`configure`.
    An update or delete of an item must carry a condition, so this class offers no plain ``save`` to rooms:
    they go through :mod:`accessportal.store.transactions`.
    """

    base_table_name: ClassVar[str]
    # What this version writes and understands of the table. A version that writes items which the one before would misread raises it, and
    # then that one leaves those alone (docs/decisions/0046-made-by-a-newer-version.md).
    known_schema: ClassVar[int] = 1
    # The attribute with the epoch seconds after which DynamoDB deletes an item by itself.
    time_to_live: ClassVar[str] = ""
    # What tells more of people than their addresses: where it lies, and the attribute with the address of whom it is about. Without one it
    # is a map by address. It goes when they are erased.
    about_people: ClassVar[Mapping[str, str]] = {}

    class Meta:
        table_name = "unset"

    # Written with every change by ``transactions``, and looked at by ``reading``; items from before there was one have none.
    schema_version = NumberAttribute(null=True)

    @classmethod
    def _get_connection(cls) -> TableConnection:
        """All tables share the one connection. One that PynamoDB makes for a table alone knows nothing of our number of attempts."""
        with _lock:
            table = super()._get_connection()
            if table.connection is not (shared := connection()):
                # Known from another class of the same table, which has the same keys and indexes.
                with suppress(ValueError):
                    shared.add_meta_table(table.get_meta_table())
                table.connection = shared
            return table


def global_index(name: str, /, **keys: Attribute[Any]) -> GlobalSecondaryIndex[Any]:
    """A global secondary index, by these keys, which carries the items whole."""
    meta = type("Meta", (), {"index_name": name, "projection": AllProjection()})
    made: type[GlobalSecondaryIndex[Any]] = type(name, (GlobalSecondaryIndex,), {"Meta": meta, **keys})
    return made()


class _Connection(Connection):
    """What is no answer of DynamoDB counts as none."""

    _judged: Any = None

    @property
    def client(self) -> Any:
        with _lock:
            client: Any = super().client
            if client is not self._judged:
                client.meta.events.register("before-parse.dynamodb", refuse_garbled)
                self._judged = client
            return client


_settings: StoreSettings | None = None
_models: list[type[PortalModel]] = []
_connection: _Connection | None = None


def register(model: type[PortalModel]) -> type[PortalModel]:
    """Class decorator: the table of ``model`` is made by ``create_tables`` and gets the configured name and region."""
    # Beside the one it inherits, which all tables would else share.
    made: Any = model
    made.Meta = type("Meta", (PortalModel.Meta,), {"table_name": model.base_table_name})
    _models.append(model)
    if _settings is not None:
        _apply(model, _settings)
    return model


def registered_models() -> tuple[type[PortalModel], ...]:
    """Every table's item class, in the order of import; the first that was registered, where a table's items have several."""
    firsts: dict[str, type[PortalModel]] = {}
    for model in _models:
        firsts.setdefault(model.base_table_name, model)
    return tuple(firsts.values())


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
    """The one connection of this process. Created at first use, after :func:`configure`."""
    global _connection
    with _lock:
        if _connection is None:
            settings = current_settings()
            _connection = _Connection(
                region=settings.region,
                connect_timeout_seconds=settings.connect_timeout_seconds,
                read_timeout_seconds=settings.read_timeout_seconds,
                max_pool_connections=settings.max_pool_connections,
                retry_configuration={"total_max_attempts": settings.max_attempts, "mode": "standard"},
            )
        return _connection


def open_connections() -> None:
    """The client is made now, before the process has threads that would all wait for it."""
    _ = connection().client


def current_settings() -> StoreSettings:
    if _settings is None:
        raise RuntimeError("store.configure() has not been called")
    return _settings


def _apply(model: type[PortalModel], settings: StoreSettings) -> None:
    meta: Any = model.Meta
    meta.table_name = f"{settings.table_prefix}{model.base_table_name}"
    meta.region = settings.region
    # A connection made before belongs to the former name and region.
    model._connection = None
    for index in model._indexes.values():
        index.Meta.model = model


def code_of(error: PynamoDBException) -> str | None:
    """DynamoDB's own word for ``error``; ``None`` when there was no answer (PynamoDB's ``cause_response_code`` raises then)."""
    response: Mapping[str, Any] = getattr(error.cause, "response", None) or {}
    return response.get("Error", {}).get("Code") or None


def unavailable(error: PynamoDBException) -> NoAnswer:
    """The kernel's word for a store that did not answer or refused for a reason that is not the caller's."""
    code = code_of(error) or type(error.cause or error).__name__
    return NoAnswer(
        f"The database did not answer ({code}). Whether anything was written is not known; try again.", code="store_unavailable"
    )
