"""Making the tables: create what is missing, add indexes that are new, switch the protections on.

Run by ``create_tables`` at every start, so everything here may be repeated at any time and in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pynamodb.connection.base import BOTOCORE_EXCEPTIONS

from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.store.base import PortalModel, connection, registered_models

_POLL_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 1_800.0
_UNKNOWN_TO_ENGINE = frozenset(
    {"UnknownOperationException", "UnknownOperation", "InvalidAction", "NotImplemented", "NotImplementedException"}
)

# Refusals of a call about many tables that may be meant for one of them.
_OF_ONE_TABLE = frozenset({"ResourceNotFoundException", "AccessDeniedException", "ValidationException"})


@dataclass(frozen=True, slots=True)
class TableReport:
    """What :func:`ensure_table` found and did. ``unsupported`` are protections that this engine does not know."""

    table: str
    created: bool
    added_indexes: tuple[str, ...]
    unsupported: tuple[str, ...]


def ensure_table(model: type[PortalModel], *, clock: Clock) -> TableReport:
    """The table of ``model`` exists with its keys, every index, on-demand billing, its TTL and the engine's protections.

    Waits until the table and its new indexes can be used (an index on a full table takes minutes; 30 at most here).

    :raises Conflict: when a table or index of this name has other keys; nothing is changed then.
    :raises Unavailable: when the engine did not answer.
    """
    name = _table_name(model)
    wanted = _wanted(model)
    found = _describe(name)
    created = found is None and _create(name, wanted)
    found = _wait_until_usable(name, clock=clock)
    _refuse_other_keys(name, wanted, found)
    added = tuple(_add_index(name, index, wanted, clock=clock) for index in _missing_indexes(wanted, found))
    return TableReport(table=name, created=created, added_indexes=added, unsupported=_protect(model, name))


def silent_tables() -> dict[str, str]:
    """The tables that do not answer a strong read right now, with the engine's word why; empty when all do.

    All are asked in one call: a store that answers late would else be late as often as there are tables.
    """
    keys = {_table_name(model): _probe(model) for model in registered_models()}
    try:
        unanswered = _client().batch_get_item(RequestItems={name: {"Keys": [key], "ConsistentRead": True} for name, key in keys.items()})
    except (*BOTOCORE_EXCEPTIONS, Unavailable) as error:
        if _code(error) not in _OF_ONE_TABLE:
            return dict.fromkeys(keys, _code(error))
        return {name: why for name, key in keys.items() if (why := _silence(name, key))}
    return dict.fromkeys(unanswered.get("UnprocessedKeys", {}), "throttled")


def _silence(name: str, key: Mapping[str, Any]) -> str:
    """The engine's word why this table does not answer; empty when it does."""
    try:
        _client().get_item(TableName=name, Key=key, ConsistentRead=True)
    except (*BOTOCORE_EXCEPTIONS, Unavailable) as error:
        return _code(error)
    return ""


def _probe(model: type[PortalModel]) -> dict[str, Any]:
    """A key under which nothing lies."""
    return {part["AttributeName"]: _PROBE[part["AttributeType"]] for part in _key_types(model)}


_PROBE = {"S": {"S": "-"}, "N": {"N": "0"}, "B": {"B": b"-"}}


def _client() -> Any:
    """The engine's own client: PynamoDB types only what it calls itself."""
    return connection().client


def _table_name(model: type[PortalModel]) -> str:
    meta: Any = model.Meta
    return str(meta.table_name)


def _wanted(model: type[PortalModel]) -> dict[str, Any]:
    """The CreateTable call for ``model``, without its name."""
    schema: Any = model._get_schema()
    wanted: dict[str, Any] = {
        "AttributeDefinitions": schema["attribute_definitions"],
        "KeySchema": _hash_first(schema["key_schema"]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    indexes = [
        {"IndexName": index["index_name"], "KeySchema": _hash_first(index["key_schema"]), "Projection": index["projection"]}
        for index in schema["global_secondary_indexes"]
    ]
    if indexes:
        wanted["GlobalSecondaryIndexes"] = indexes
    return wanted


def _hash_first(key_schema: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(key_schema, key=lambda part: part["KeyType"])


def _key_types(model: type[PortalModel]) -> list[dict[str, str]]:
    wanted = _wanted(model)
    keys = {part["AttributeName"] for part in wanted["KeySchema"]}
    return [part for part in wanted["AttributeDefinitions"] if part["AttributeName"] in keys]


def _describe(name: str) -> dict[str, Any] | None:
    try:
        answer: dict[str, Any] = _client().describe_table(TableName=name)["Table"]
    except BOTOCORE_EXCEPTIONS as error:
        if _code(error) == "ResourceNotFoundException":
            return None
        raise _unavailable(error) from error
    return answer


def _create(name: str, wanted: Mapping[str, Any]) -> bool:
    """Whether this call created it (another process may have been faster)."""
    try:
        _client().create_table(TableName=name, **wanted)
    except BOTOCORE_EXCEPTIONS as error:
        if _code(error) == "ResourceInUseException":
            return False
        raise _unavailable(error) from error
    return True


def _wait_until_usable(name: str, *, clock: Clock) -> dict[str, Any]:
    """The table's description once it and all its indexes are ACTIVE."""
    waited = 0.0
    while waited <= _LONGEST_WAIT_SECONDS:
        found = _describe(name)
        if found is not None and _is_usable(found):
            return found
        clock.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
    raise Unavailable(f"The table {name} is still being made after 30 minutes. Run create_tables again later.", code="table_not_ready")


def _is_usable(found: Mapping[str, Any]) -> bool:
    indexes = found.get("GlobalSecondaryIndexes") or []
    return found["TableStatus"] == "ACTIVE" and all(index.get("IndexStatus", "ACTIVE") == "ACTIVE" for index in indexes)


def _keys(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(part["AttributeName"], part["KeyType"]) for part in _hash_first(schema["KeySchema"])]


def _refuse_other_keys(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Keys can't be changed in place: going on would read and write another program's table."""
    existing = {index["IndexName"]: index for index in found.get("GlobalSecondaryIndexes") or []}
    pairs = [(f"table {name}", wanted, found)]
    pairs += [
        (f"index {index['IndexName']} of table {name}", index, existing[index["IndexName"]])
        for index in wanted.get("GlobalSecondaryIndexes", [])
        if index["IndexName"] in existing
    ]
    for what, ours, theirs in pairs:
        if _keys(ours) != _keys(theirs):
            raise Conflict(
                f"The {what} exists with the keys {_keys(theirs)}, but {_keys(ours)} are needed. "
                "Set PORTAL_TABLE_PREFIX to a free prefix, or move the old table away.",
                code="table_has_other_keys",
            )


def _missing_indexes(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[dict[str, Any]]:
    existing = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes") or []}
    return [index for index in wanted.get("GlobalSecondaryIndexes", []) if index["IndexName"] not in existing]


def _add_index(name: str, index: dict[str, Any], wanted: Mapping[str, Any], *, clock: Clock) -> str:
    """One index at a time, each to its end: DynamoDB allows no more."""
    try:
        _client().update_table(
            TableName=name,
            AttributeDefinitions=wanted["AttributeDefinitions"],
            GlobalSecondaryIndexUpdates=[{"Create": index}],
        )
    except BOTOCORE_EXCEPTIONS as error:
        # Another process adds it right now; waiting for the table is all that is left to do.
        if _code(error) != "ResourceInUseException":
            raise _unavailable(error) from error
    _wait_until_usable(name, clock=clock)
    return str(index["IndexName"])


def _protect(model: type[PortalModel], name: str) -> tuple[str, ...]:
    """Switch on what guards the data; the names of what the engine does not know."""
    steps: dict[str, Callable[[], None]] = {
        "point-in-time recovery": lambda: _enable_recovery(name),
        "deletion protection": lambda: _enable_deletion_protection(name),
    }
    if model.time_to_live:
        steps["time to live"] = lambda: _enable_ttl(name, model.time_to_live)
    return tuple(title for title, step in steps.items() if not _is_known(step))


def _is_known(step: Callable[[], None]) -> bool:
    try:
        step()
    except BOTOCORE_EXCEPTIONS as error:
        if _code(error) in _UNKNOWN_TO_ENGINE:
            return False
        raise _unavailable(error) from error
    return True


def _enable_recovery(name: str) -> None:
    client = _client()
    found = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    if found.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") != "ENABLED":
        client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})


def _enable_deletion_protection(name: str) -> None:
    client = _client()
    if not client.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
        client.update_table(TableName=name, DeletionProtectionEnabled=True)


def _enable_ttl(name: str, attribute: str) -> None:
    client = _client()
    found = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    # Switching on what is on is refused by DynamoDB (ValidationException), so look first.
    if found.get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
        client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute})


def _code(error: BaseException) -> str:
    if isinstance(error, Unavailable):
        return error.code
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def _unavailable(error: BaseException) -> Unavailable:
    return Unavailable(f"The database did not carry out the table operation ({_code(error)}: {error}).", code="store_unavailable")
