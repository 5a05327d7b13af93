"""Steps on items beside the sandbox, for the transaction that changes it: its key, and its line in the free list."""

from __future__ import annotations

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import KeyRecord, Sandbox, Status
from accessportal.store.transactions import Remove, Step, Upsert


def open_key(record: KeyRecord | None, *, key: str, request_hash: str, sandbox: Sandbox) -> Upsert:
    """The key stands for ``sandbox`` from now on, if it is still as ``record`` says (``None``: absent)."""
    assert sandbox.allocated_at is not None
    actions: list[Action] = [
        SandboxItem.request_hash.set(request_hash),
        SandboxItem.sandbox_id.set(sandbox.sandbox_id),
        SandboxItem.fence.set(sandbox.fence),
        SandboxItem.track.set(sandbox.track),
        # With no status beside it, no index sees it.
        SandboxItem.allocated_at.set(to_epoch(sandbox.allocated_at)),
        SandboxItem.state.set("open"),
        SandboxItem.version.set(1 if record is None else record.version + 1),
    ]
    if sandbox.expires_at is not None:
        actions.append(SandboxItem.expires_at.set(to_epoch(sandbox.expires_at)))
    pk, sk = models.idempotency_item_key(key)
    return Upsert(SandboxItem, pk, actions, _key_as_read(record), range_key=sk)


def close_key(record: KeyRecord) -> Upsert:
    """The key stands for nothing any more."""
    pk, sk = models.idempotency_item_key(record.key)
    actions = [SandboxItem.state.set("closed"), SandboxItem.version.set(record.version + 1)]
    return Upsert(SandboxItem, pk, actions, _key_as_read(record), range_key=sk)


def take_free(sandbox_id: str) -> Remove:
    """Its line leaves the free list, which must hold it."""
    pk, sk = models.free_key(sandbox_id)
    return Remove(SandboxItem, pk, SandboxItem.pk.exists(), range_key=sk)


def becoming_free(sandbox: Sandbox) -> list[Step]:
    """The line of the free list and the count of returns, for a sandbox that becomes available."""
    if sandbox.status is not Status.AVAILABLE:
        return []
    pk, sk = models.free_key(sandbox.sandbox_id)
    pool_pk, pool_sk = models.pool_key()
    returned = models.returns_in(models.free_shard_of(sandbox.sandbox_id))
    line = [
        SandboxItem.sandbox_id.set(sandbox.sandbox_id),
        SandboxItem.name.set(sandbox.name),
        SandboxItem.version.set(sandbox.version),
    ]
    return [
        # Over whatever line is left from before: it is the row's own condition that decides.
        Upsert(SandboxItem, pk, line, _always(), range_key=sk),
        Upsert(SandboxItem, pool_pk, [returned.add(1)], _always(), range_key=pool_sk),
    ]


def _always() -> Condition:
    condition: Condition = SandboxItem.pk.exists() | SandboxItem.pk.does_not_exist()
    return condition


def _key_as_read(record: KeyRecord | None) -> Condition:
    condition: Condition = SandboxItem.pk.does_not_exist() if record is None else SandboxItem.version == record.version
    return condition
