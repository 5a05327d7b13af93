"""Conditional writes. Every change of every table goes through :func:`transact`."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from pynamodb.exceptions import DoesNotExist, PynamoDBException, TransactWriteError, UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path, Value
from pynamodb.expressions.update import Action, SetAction
from pynamodb.transactions import TransactWrite

from accessportal.kernel.errors import NoAnswer, PortalError
from accessportal.store.base import PortalModel, code_of, connection, unavailable
from accessportal.store.newer_versions import not_newer

T = TypeVar("T")
_MAX_ATTEMPTS = 12
_MOST_DECISIONS = 25
_UNDER_WAY = "TransactionInProgressException"
_RETRIED_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


@dataclass(frozen=True, slots=True)
class Insert:
    """A new item; fails if its key exists."""

    item: PortalModel


@dataclass(frozen=True, slots=True)
class Change:
    """An update of an item that must exist and meet ``condition``."""

    model: type[PortalModel]
    hash_key: str
    actions: Sequence[Action]
    condition: Condition
    range_key: str | int | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """An update that may create the item; ``condition`` says when (it must rule out every state but the wanted ones)."""

    model: type[PortalModel]
    hash_key: str
    actions: Sequence[Action]
    condition: Condition
    range_key: str | int | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """A deletion of an item that must exist and meet ``condition``."""

    model: type[PortalModel]
    hash_key: str
    condition: Condition
    range_key: str | int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """No write: the whole transaction fails unless this item exists (or ``may_be_missing``) and meets ``condition``.

    A room may hand a guard on its own item to another room, so that the other room's write happens only while it holds.
    """

    model: type[PortalModel]
    hash_key: str
    condition: Condition
    range_key: str | int | None = None
    may_be_missing: bool = False


Step = Insert | Change | Upsert | Remove | Guard


class ConditionFailed(Exception):
    """Step ``position`` of the list did not meet its condition; nothing was written."""

    def __init__(self, position: int, step: Step) -> None:
        super().__init__(f"condition of step {position} ({type(step).__name__} {step_model(step).__name__}) failed")
        self.position = position
        self.step = step


class Overtaken(Exception):
    """Another writer changed the thing since it was read. Read it again and decide again."""


def until_written(attempt: Callable[[], T], *, contended: PortalError) -> T:
    """The result of ``attempt``, which reads, decides and writes; again from the start whenever it was overtaken.

    :raises PortalError: ``contended``, when others never cease to come between.
    """
    for number in range(_MOST_DECISIONS):
        try:
            return attempt()
        except Overtaken:
            # Many who were refused at once must not come back at once.
            time.sleep(random.uniform(0, 0.005) * number)
    raise contended


def step_model(step: Step) -> type[PortalModel]:
    return type(step.item) if isinstance(step, Insert) else step.model


def transact(steps: Sequence[Step]) -> None:
    """Write all ``steps`` or none (at most 100, a DynamoDB limit).

    A collision with another transaction on the same item is tried again with growing, random gaps. Our own one that is still under
    way, because the answer to its first sending was lost, is sent again under its token: the engine writes it once.

    :raises ConditionFailed: for the first step, in the order given, whose condition did not hold.
    :raises Unavailable: when the store did not answer; what was written is not known.
    """
    token = _new_token()
    for attempt in range(_MAX_ATTEMPTS):
        try:
            _write(steps, token)
            return
        except TransactWriteError as error:
            _raise_condition_failed(steps, error)
            if code_of(error) != _UNDER_WAY:
                if not _is_collision(error):
                    raise unavailable(error) from error
                token = _new_token()
        except PynamoDBException as error:
            raise unavailable(error) from error
        time.sleep(random.uniform(0.005, 0.02) * 1.6**attempt)
    raise NoAnswer("Too many others are changing the same thing right now. Try again.", code="store_contended")


def update_one(step: Change | Upsert) -> PortalModel:
    """Write one update by itself and return the item as it stands after it. For bookkeeping that no event tells: leases,
    reservations, retry times.

    When the answer to the first sending was lost, the second one meets a condition that the first has undone: what stands there as
    it would be written now is ours. So two callers must not write the same values.

    :raises ConditionFailed: when the condition did not hold.
    :raises Unavailable: when the store did not answer; whether it was written is not known.
    """
    item = _key_only(step)
    try:
        item.update(actions=_stamped(step), condition=_guarded(step))
    except UpdateError as error:
        if code_of(error) == "ConditionalCheckFailedException":
            written = _as_written(step) if _was_sent_again(error) else None
            if written is not None:
                return written
            raise ConditionFailed(0, step) from error
        raise unavailable(error) from error
    except PynamoDBException as error:
        raise unavailable(error) from error
    return item


def _was_sent_again(error: UpdateError) -> bool:
    """Whether botocore had sent the call before. It says so in its own error alone, which PynamoDB's hides."""
    cause = error.cause.__cause__ if error.cause is not None else None
    response: dict[str, Any] = getattr(cause, "response", {})
    return int(response.get("ResponseMetadata", {}).get("RetryAttempts", 0)) > 0


def _as_written(step: Change | Upsert) -> PortalModel | None:
    """The item, if every attribute that ``step`` sets is as it sets it. An addition to what was there can't be told from another's."""
    item = _key_only(step)
    try:
        item.refresh(consistent_read=True)
    except DoesNotExist:
        return None
    except PynamoDBException as error:
        raise unavailable(error) from error
    present = item.serialize(null_check=False)  # by itself an update may make an item of a few attributes
    sets = [action.values for action in step.actions if isinstance(action, SetAction)]
    is_ours = all(
        isinstance(path, Path) and isinstance(value, Value) and _is_same(present.get(path.path[0]), value.value) for path, value in sets
    )
    return item if sets and is_ours else None


def _is_same(present: Any, written: Any) -> bool:
    # The engine writes a number its own way: 5.0 comes back as 5.
    if present is not None and set(present) == set(written) == {"N"}:
        return Decimal(present["N"]) == Decimal(written["N"])
    return bool(present == written)


def _new_token() -> str:
    return str(uuid.uuid4())


def _write(steps: Sequence[Step], token: str) -> None:
    with TransactWrite(connection=connection(), client_request_token=token) as transaction:
        for step in steps:
            if isinstance(step, Insert):
                step.item.schema_version = step.item.known_schema
                transaction.save(step.item, condition=~exists(type(step.item)))
            elif isinstance(step, Guard):
                condition = step.condition if step.may_be_missing else exists(step.model) & step.condition
                transaction.condition_check(step.model, step.hash_key, step.range_key, condition=condition)
            elif isinstance(step, Remove):
                transaction.delete(_key_only(step), condition=_guarded(step))
            else:
                transaction.update(_key_only(step), actions=_stamped(step), condition=_guarded(step))


def _stamped(step: Change | Upsert) -> list[Action]:
    return [*step.actions, step.model.schema_version.set(step.model.known_schema)]


def _guarded(step: Change | Upsert | Remove) -> Condition:
    condition: Condition = step.condition if isinstance(step, Upsert) else exists(step.model) & step.condition
    guarded: Condition = condition & not_newer(step.model)
    return guarded


def exists(model: type[PortalModel]) -> Condition:
    """The condition that the item exists: an update without it would create a torso (a DynamoDB trap)."""
    (hash_key,) = (attribute for attribute in model.get_attributes().values() if attribute.is_hash_key)
    return hash_key.exists()


def _key_only(step: Change | Upsert | Remove) -> PortalModel:
    return step.model(step.hash_key) if step.range_key is None else step.model(step.hash_key, step.range_key)


def _written_order(steps: Sequence[Step]) -> list[int]:
    """Positions of ``steps`` in the order in which PynamoDB sends them and the engine gives its reasons.

    PynamoDB sends checks, then deletes, puts and updates, whatever the order of the calls.
    """
    rank = {Guard: 0, Remove: 1, Insert: 2, Change: 3, Upsert: 3}
    return sorted(range(len(steps)), key=lambda position: rank[type(steps[position])])


def _raise_condition_failed(steps: Sequence[Step], error: TransactWriteError) -> None:
    failed = [
        position
        for position, reason in zip(_written_order(steps), error.cancellation_reasons, strict=False)
        if reason is not None and reason.code == "ConditionalCheckFailed"
    ]
    if failed:
        raise ConditionFailed(min(failed), steps[min(failed)]) from error


def _is_collision(error: TransactWriteError) -> bool:
    reasons = {reason.code for reason in error.cancellation_reasons if reason is not None}
    return bool(reasons & _RETRIED_REASONS)
