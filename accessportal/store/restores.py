"""What is known of each time that the tables were restored to an earlier moment: from which number everything counts on, and whether
grants are held.

One small table, ``Restores`` (PK ``name``, SK ``epoch``), durable. An epoch is the moment, in whole epoch seconds, at which the
restore was told to the portal: what was counted before it, also in the time that is lost, grew by less than one a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute
from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import from_epoch
from accessportal.kernel.moments import SKEW
from accessportal.kernel.pages import Unreadable
from accessportal.kernel.proofs import Waiting
from accessportal.store.base import PortalModel, register
from accessportal.store.listing import Listing
from accessportal.store.reading import ItemKey
from accessportal.store.records import Records
from accessportal.store.transactions import ConditionFailed, Guard, Upsert, transact, update_one

_NAME = "restore"
_HEAD_KEY = ("head", 0)
_LOOK_AGAIN = timedelta(minutes=1)
HELD = "The tables were restored, and nothing is granted until an operator has confirmed that"


@register
class RestoreItem(PortalModel):
    """One restore. Times are epoch seconds; ``done`` are the steps after it that are done."""

    base_table_name = "Restores"

    name = UnicodeAttribute(hash_key=True)
    epoch = NumberAttribute(range_key=True)
    restored_to = NumberAttribute()
    begun_by = UnicodeAttribute()
    done = UnicodeSetAttribute(null=True)
    confirmed_by = UnicodeAttribute(null=True)
    confirmed_at = NumberAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()
    # of the head alone: the epoch of the restore that holds grants, or 0
    held_epoch = NumberAttribute(null=True)


HEAD: ItemKey = (RestoreItem, *_HEAD_KEY)
"""The item that says whether grants are held, for those who read it together with others (:func:`is_held_by`)."""


@dataclass(frozen=True, slots=True)
class Restore:
    """One restore, as it stands. Grants are held until somebody has confirmed it."""

    epoch: int
    restored_to: datetime
    begun_by: str
    done: frozenset[str] = frozenset()
    confirmed_by: str = ""
    confirmed_at: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"restore#{self.epoch}"

    @property
    def is_held(self) -> bool:
        return self.confirmed_at is None

    @property
    def lost_since(self) -> datetime:
        """Whatever is told to have happened from then on happened after the restore; what was lost is in no table."""
        return min(self.restored_to + SKEW, from_epoch(self.epoch))


RESTORES = Records(RestoreItem, Restore, key=lambda restore: (_NAME, restore.epoch))
_listing = Listing("restores", RestoreItem, RESTORES.record, newest_first=True, consistent=True)


def last_restore() -> Restore | None:
    """The newest, strongly read: one request. ``None``: the tables were never restored.

    :raises Unavailable: when the store did not answer, or the item can't be read; nobody may take that for "not held".
    """
    return next(_listing.every(_NAME, at_once=1), None)


def every_restore(*, past: Callable[[Unreadable], object] | None = None) -> tuple[Restore, ...]:
    """Newest first, strongly read; ``past`` as in :func:`~accessportal.kernel.pages.every`.

    :raises Unavailable: as :func:`last_restore`.
    """
    return tuple(_listing.every(_NAME, past=past))


def find_restore(epoch: int) -> Restore | None:
    """Strongly read. :raises Unavailable: as :func:`last_restore`."""
    return RESTORES.get(_NAME, epoch)


def held_restore() -> Restore | None:
    """The restore because of which nothing may be given now; ``None`` while grants go on.

    :raises Unavailable: as :func:`last_restore`.
    """
    last = last_restore()
    return last if last is not None and last.is_held else None


def is_held_by(head: RestoreItem | None) -> bool:
    """Whether grants are held, by the head as it was read. Tables of version 0.5.0 have none: it is made, once.

    :raises Unavailable: as :func:`last_restore`.
    """
    if head is not None:
        return bool(head.held_epoch)
    held = held_restore()
    with suppress(ConditionFailed):
        update_one(_head_step(0 if held is None else held.epoch, RestoreItem.name.does_not_exist()))
    return held is not None


def _head_step(held_epoch: int, condition: Condition) -> Upsert:
    name, epoch = _HEAD_KEY
    return Upsert(RestoreItem, name, [RestoreItem.held_epoch.set(held_epoch)], condition, range_key=epoch)


def held_back(now: datetime) -> Waiting:
    """What a grant waits for meanwhile. It is no error, and nobody stands by for it."""
    return Waiting("grants_held", HELD, now + _LOOK_AGAIN, is_error=False, is_queued=True)


def first_fence() -> int:
    """No fence is given that is not above this one.

    :raises Unavailable: as :func:`last_restore`.
    """
    last = last_restore()
    return last.epoch if last is not None else 0


def epoch_of(at: datetime, restores: Sequence[Restore]) -> int:
    """The epoch to which something belongs that happened ``at``, of ``restores``, newest first; 0: before the first."""
    return next((one.epoch for one in restores if at >= one.lost_since), 0)


def hold_grants(restore: Restore) -> Upsert:
    """The transaction step that holds all grants, for one that is begun."""
    return _head_step(restore.epoch, RestoreItem.name.does_not_exist() | (RestoreItem.held_epoch < restore.epoch))


def hold_grants_again(restore: Restore) -> None:
    """Hold all grants for one that is under way as it was read: where the version before began it, the head knows nothing of it."""
    still_held = Guard(RestoreItem, _NAME, RESTORES.is_unchanged(restore), range_key=restore.epoch)
    with suppress(ConditionFailed):
        transact([still_held, hold_grants(restore)])


def free_grants(restore: Restore) -> Upsert:
    """The transaction step by which a restore that is confirmed, the last, holds no grants any more; nor does one before it."""
    return _head_step(0, RestoreItem.name.does_not_exist() | (RestoreItem.held_epoch <= restore.epoch))
