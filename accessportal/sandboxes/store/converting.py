"""Rows and records: what other programs leave out or write otherwise, and the condition that a row is still as it was read."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Sandbox, Unreadable
from accessportal.store.reading import RawItem
from accessportal.store.records import Records

# As the provider's list is read. Another program's row may say more than could be added to a moment.
_LONGEST_LAB_HOURS = 24 * 365
# Of the seed's attributes: other programs write 0 for no moment.
_MOMENTS = ("allocated_at", "deletion_requested_at", "last_synced")


def _as_the_seed_has_it(sandbox: Sandbox) -> dict[str, Any]:
    """Attributes that are always there, for the seed's index and programs."""
    return {"allocated_at": _allocated_at(sandbox), "deletion_retry_count": sandbox.deletion_retry_count}


def _allocated_at(sandbox: Sandbox) -> int:
    return 0 if sandbox.allocated_at is None else to_epoch(sandbox.allocated_at)


sandboxes = Records(
    SandboxItem,
    Sandbox,
    key=lambda sandbox: models.sandbox_key(sandbox.sandbox_id),
    also=_as_the_seed_has_it,
)


def record_of(item: SandboxItem) -> Sandbox:
    """:raises ValueError: when the row is not as the contract says: somebody else has changed it."""
    item.sandbox_id = item.sandbox_id or item.pk.partition("#")[2]
    item.name, item.external_id = item.name or "", item.external_id or ""
    item.lab_duration_hours = min(item.lab_duration_hours or 0, _LONGEST_LAB_HOURS)
    item.created_at, item.updated_at = item.created_at or 0, item.updated_at or 0
    for name in _MOMENTS:
        setattr(item, name, getattr(item, name) or None)
    return sandboxes.record(item)


def unreadable(raw: RawItem) -> Unreadable:
    return Unreadable(sandbox_id=str(raw["PK"]["S"]).partition("#")[2], external_id=str(raw.get("external_id", {}).get("S", "")))


def as_read(sandbox: Sandbox) -> Condition:
    """Ours by the version; the rest is for programs that know no version."""
    condition: Condition = SandboxItem.status == sandbox.status.value
    condition &= _is(SandboxItem.held_by, sandbox.held_by) & _is(SandboxItem.version, sandbox.version)
    condition &= _is(SandboxItem.track, sandbox.track) & _is(SandboxItem.fence, sandbox.fence)
    condition &= _is(SandboxItem.allocated_at, _allocated_at(sandbox))
    return condition


def _is(attribute: Attribute[Any], value: str | int) -> Condition:
    """A row that no program of ours has written may say 0, or nothing."""
    condition: Condition = attribute == value
    if value:
        return condition
    missing: Condition = attribute.does_not_exist()
    return missing | condition if value == 0 else missing
