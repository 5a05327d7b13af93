"""What the workflow adds to the pool: who holds how many, and when a client was last told that none is free."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import SKEW, is_recent
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Holder
from accessportal.store.reading import get_item
from accessportal.store.transactions import ConditionFailed, Upsert, update_one

# Clients that ask an empty pool again and again must not all write the same item.
_NOTE_EVERY = timedelta(seconds=30)


def get_holder(track: str) -> Holder:
    """Strongly read; version 0: there is no item yet."""
    item = get_item(SandboxItem, *models.holder_key(track))
    if item is None:
        return Holder(track, {}, 0)
    return Holder(track, {} if item.holds is None else dict(item.holds.as_dict()), int(item.version or 0))


def hold_for(holder: Holder, holds: dict[str, str]) -> Upsert:
    """``holder`` has ``holds`` from now on, if nobody changed it since it was read."""
    pk, sk = models.holder_key(holder.track)
    unchanged = SandboxItem.version == holder.version if holder.version else SandboxItem.pk.does_not_exist()
    actions = [SandboxItem.holds.set(holds), SandboxItem.version.set(holder.version + 1)]
    return Upsert(SandboxItem, pk, actions, unchanged, range_key=sk)


def none_told_at() -> datetime | None:
    """When a client was last told that none is free (half a minute more or less); ``None``: never."""
    item = get_item(SandboxItem, *models.demand_key())
    return None if item is None or item.none_at is None else from_epoch(item.none_at)


def note_none(now: datetime) -> None:
    """A client is told that none is free."""
    last = none_told_at()
    if last is not None and is_recent(last, now=now, within=_NOTE_EVERY):
        return
    at = to_epoch(now)
    ahead = to_epoch(now + SKEW)
    newer = SandboxItem.none_at.does_not_exist() | (SandboxItem.none_at < at) | (SandboxItem.none_at > ahead)
    pk, sk = models.demand_key()
    with contextlib.suppress(ConditionFailed):
        update_one(Upsert(SandboxItem, pk, [SandboxItem.none_at.set(at)], newer, range_key=sk))
