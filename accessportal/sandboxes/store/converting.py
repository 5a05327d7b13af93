"""Rows and records: reading one from the other, what differs, and the condition that a row is still as it was read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Claim, Due, Sandbox, Status, Unreadable
from accessportal.store.reading import RawItem
from accessportal.store.transactions import Change

# As the provider's list is read. Another program's row may say more than could be added to a moment.
_LONGEST_LAB_HOURS = 24 * 365


def unreadable(raw: RawItem) -> Unreadable:
    return Unreadable(sandbox_id=str(raw["PK"]["S"]).partition("#")[2], external_id=str(raw.get("external_id", {}).get("S", "")))


def record_of(item: SandboxItem) -> Sandbox:
    """:raises ValueError: when the row is not as the contract says: somebody else has changed it."""
    try:
        return _record_of(item)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError) as error:
        # A time of the year five billion is an OSError.
        raise ValueError(str(error)) from error


def _record_of(item: SandboxItem) -> Sandbox:
    return Sandbox(
        sandbox_id=item.sandbox_id or item.pk.partition("#")[2],
        name=item.name or "",
        external_id=item.external_id or "",
        status=Status(item.status),
        lab_duration_hours=min(item.lab_duration_hours or 0, _LONGEST_LAB_HOURS),
        created_at=from_epoch(item.created_at or 0),
        updated_at=from_epoch(item.updated_at or 0),
        allocated_at=_moment(item.allocated_at),
        track=item.allocated_to_track or "",
        key=item.idempotency_key or "",
        expires_at=_moment(item.expires_at),
        grace_ends_at=_moment(item.grace_ends_at),
        lent_at=_moment(item.lent_at),
        fence=int(item.fence or 0),
        due=None if item.due is None else Due(item.due),
        due_at=_moment(item.due_at),
        deletion_requested_at=_moment(item.deletion_requested_at),
        deletion_retry_count=int(item.deletion_retry_count or 0),
        delete_sent_at=_moment(item.delete_sent_at),
        delete_generation=item.delete_generation or "",
        generation=item.generation or "",
        clean_error=item.clean_error or "",
        quarantine_reason=item.quarantine_reason or "",
        held_by=item.held_by or "",
        held_until=_moment(item.held_until),
        last_synced=_moment(item.last_synced),
        missing_since=_moment(item.missing_since),
        last_released_by=item.last_released_by or "",
        last_released_at=_moment(item.last_released_at),
        last_released_fence=int(item.last_released_fence or 0),
        claims=() if item.claims is None else _claims_of(item.claims.as_dict()),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
    )


# The fields that the seed calls otherwise.
ITEM_NAMES = {"track": "allocated_to_track", "key": "idempotency_key"}

ATTRIBUTES: dict[str, Attribute[Any]] = {
    field.name: getattr(SandboxItem, ITEM_NAMES.get(field.name, field.name)) for field in fields(Sandbox) if field.name != "sandbox_id"
}
"""Where a row holds each field of the record."""

_MILLISECONDS = frozenset({"due_at", "held_until", "delete_sent_at"})
_NUMBERS = frozenset({"lab_duration_hours", "fence", "deletion_retry_count", "version", "last_released_fence"})


def stored(name: str, value: Any) -> Any:
    """A field of the record as its attribute holds it; ``None``: the attribute is not there."""
    if name == "allocated_at":
        return 0 if value is None else to_epoch(value)
    if name == "claims":
        return {claim.name: to_epoch(claim.ends_at) for claim in value} or None
    if isinstance(value, datetime):
        return precise(value) if name in _MILLISECONDS else to_epoch(value)
    if name in _NUMBERS:
        return value if value or name in {"deletion_retry_count", "lab_duration_hours"} else None
    return str(value) if value else None


def differences(before: Sandbox, after: Sandbox) -> list[Action]:
    actions: list[Action] = []
    for name, attribute in ATTRIBUTES.items():
        old, new = stored(name, getattr(before, name)), stored(name, getattr(after, name))
        if old != new:
            actions.append(attribute.remove() if new is None else attribute.set(new))
    return actions


def row_change(sandbox: Sandbox, actions: Sequence[Action], condition: Condition) -> Change:
    pk, sk = models.sandbox_key(sandbox.sandbox_id)
    return Change(SandboxItem, pk, actions, condition, range_key=sk)


def as_read(sandbox: Sandbox) -> Condition:
    """Ours by the version; the rest is for programs that know no version."""
    condition = _equals("held_by", sandbox)
    for name in ("version", "status", "allocated_at", "track", "fence"):
        condition &= _equals(name, sandbox)
    return condition


def _equals(name: str, sandbox: Sandbox) -> Condition:
    attribute, value = ATTRIBUTES[name], stored(name, getattr(sandbox, name))
    condition: Condition = attribute.does_not_exist() if value is None else attribute == value
    # A row that no program of ours has written may say 0, or nothing.
    if value is None and name in _NUMBERS:
        condition |= attribute == 0
    return condition


def precise(moment: datetime) -> float:
    """Epoch seconds with milliseconds, rounded down: what is due now must not be stored as due in a moment."""
    return math.floor(moment.timestamp() * 1000) / 1000


def _claims_of(ends: Mapping[str, float]) -> tuple[Claim, ...]:
    return tuple(Claim(name, from_epoch(end)) for name, end in sorted(ends.items()))


def _moment(seconds: float | None) -> datetime | None:
    return None if not seconds else from_epoch(seconds)
