"""Idempotency keys, and who holds how many: read together before a hand-over, and the steps that write them with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Due, Holder, KeyRecord, Sandbox
from accessportal.store.reading import ItemKey, ReadAhead, get_item, get_together, scan_records
from accessportal.store.restores import HEAD, is_held_by
from accessportal.store.transactions import Change, Guard, Upsert


@dataclass(frozen=True, slots=True)
class Seen:
    """What decides a hand-over beside the sandbox, strongly read in one request. ``is_held``: a restore is not confirmed yet. ``waits``:
    the place in the line that was asked for, too, is there."""

    record: KeyRecord | None
    holder: Holder
    is_held: bool
    waits: bool = False


def looked_up(key: str, *, holder: str) -> list[ItemKey]:
    """The items that :func:`look_up` reads."""
    return [(SandboxItem, *models.idempotency_item_key(key)), (SandboxItem, *models.holder_key(holder)), HEAD]


def look_up(key: str, *, holder: str, place: ItemKey | None = None, ahead: ReadAhead | None = None) -> Seen:
    """What stands for ``key``, what ``holder`` has, whether anything may be given, and whether there is the ``place``."""
    record, held, head, *places = get_together([*looked_up(key, holder=holder), *([place] if place else [])], ahead=ahead)
    return Seen(None if record is None else _record_of(key, record), _holder_of(holder, held), is_held_by(head), any(places))


def get_with_place(key: str, place: ItemKey) -> tuple[KeyRecord | None, bool]:
    """As :func:`get_key`, and whether there is the ``place``, in one request: they need not be of one moment."""
    item, found = get_together([(SandboxItem, *models.idempotency_item_key(key)), place])
    return None if item is None else _record_of(key, item), found is not None


def get_key(key: str) -> KeyRecord | None:
    """Strongly read: the truth about repeats."""
    item = get_item(SandboxItem, *models.idempotency_item_key(key))
    return None if item is None else _record_of(key, item)


def get_keys(keys: Iterable[str]) -> dict[str, KeyRecord | None]:
    """As :func:`get_key` for each of them, read together."""
    wanted = list(dict.fromkeys(keys))
    items = get_together([(SandboxItem, *models.idempotency_item_key(key)) for key in wanted])
    return {key: None if item is None else _record_of(key, item) for key, item in zip(wanted, items, strict=True)}


def _any_key(item: SandboxItem) -> KeyRecord | None:
    key = models.key_in(item.pk)
    return None if key is None else _record_of(key, item)


every_key = partial(scan_records, SandboxItem, _any_key)
"""The whole table, for checks."""


def _record_of(key: str, item: SandboxItem) -> KeyRecord:
    return KeyRecord(
        key=key,
        request_hash=item.request_hash or "",
        sandbox_id=item.sandbox_id or "",
        fence=int(item.fence or 0),
        track=item.key_track or "",
        is_open=item.state == "open",
        version=int(item.version or 0),
    )


def _holder_of(track: str, item: SandboxItem | None) -> Holder:
    """Version 0: there is no item yet."""
    if item is None:
        return Holder(track, {}, 0)
    return Holder(track, {} if item.holds is None else dict(item.holds.as_dict()), int(item.version or 0))


def hold_for(holder: Holder, holds: Mapping[str, str]) -> Upsert:
    """``holder`` has ``holds`` from now on, if nobody changed it since it was read."""
    pk, sk = models.holder_key(holder.track)
    unchanged = SandboxItem.version == holder.version if holder.version else SandboxItem.pk.does_not_exist()
    actions = [SandboxItem.holds.set(dict(holds)), SandboxItem.version.set(holder.version + 1)]
    return Upsert(SandboxItem, pk, actions, unchanged, range_key=sk)


def open_key(record: KeyRecord | None, *, key: str, request_hash: str, sandbox: Sandbox) -> Upsert:
    """The key stands for ``sandbox`` from now on, if it is still as ``record`` says (``None``: absent)."""
    assert sandbox.allocated_at is not None
    actions: list[Action] = [
        SandboxItem.request_hash.set(request_hash),
        SandboxItem.sandbox_id.set(sandbox.sandbox_id),
        SandboxItem.fence.set(sandbox.fence),
        SandboxItem.key_track.set(sandbox.track),
        # With no status beside it, no index sees it.
        SandboxItem.allocated_at.set(to_epoch(sandbox.allocated_at)),
        SandboxItem.state.set("open"),
        SandboxItem.version.set(1 if record is None else record.version + 1),
    ]
    if sandbox.expires_at is not None:
        actions.append(SandboxItem.expires_at.set(to_epoch(sandbox.expires_at)))
    unchanged: Condition = SandboxItem.pk.does_not_exist() if record is None else SandboxItem.version == record.version
    pk, sk = models.idempotency_item_key(key)
    return Upsert(SandboxItem, pk, actions, unchanged, range_key=sk)


def is_unused(key: str) -> Guard:
    """The guard that nothing was ever lent for the key."""
    pk, sk = models.idempotency_item_key(key)
    return Guard(SandboxItem, pk, SandboxItem.pk.does_not_exist(), sk, may_be_missing=True)


def follow(before: Sandbox, after: Sandbox) -> Change | None:
    """The step with which the open key of a hand-over follows it, unread: closed with its end, at its fence when that is raised."""
    if before.due is not Due.EXPIRE or not before.key:
        return None
    if after.due is not Due.EXPIRE:
        action: Action = SandboxItem.state.set("closed")
    elif after.fence != before.fence:
        action = SandboxItem.fence.set(after.fence)
    else:
        return None
    pk, sk = models.idempotency_item_key(before.key)
    stands = (SandboxItem.state == "open") & (SandboxItem.sandbox_id == before.sandbox_id) & (SandboxItem.fence == before.fence)
    return Change(SandboxItem, pk, [action, SandboxItem.version.add(1)], stands, range_key=sk)
