"""Mirror work: one item for each person or group that Cognito must still follow, written with the change itself.

An item goes only when Cognito was proved equal and its ``token`` is still the one that was there before the proof: every change
gives it a new one. ``leaseUntil`` keeps two workers from converging the same person or group at once; it grows with every lease,
so it also says whose the lease is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.store import reading
from accessportal.directory.store.following import ask_step, entity_of, item_pk_of
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import Page
from accessportal.kernel.runs import Failure
from accessportal.mirror.states import MirrorWork
from accessportal.store.listing import Listing
from accessportal.store.reading import RawItem, read_as
from accessportal.store.transactions import Change, ConditionFailed, Remove, transact, update_one

_CHUNK = 25


def ask(entities: Collection[str], *, now: datetime) -> None:
    """Ask for the mirroring of these people and groups, although none of them was changed."""
    wanted = sorted(set(entities))
    for start in range(0, len(wanted), _CHUNK):
        transact([ask_step(item_pk_of(entity), now) for entity in wanted[start : start + _CHUNK]])


def find_pending(entity: str) -> MirrorWork | None:
    """Find what Cognito must still follow of a person or group; ``None`` when it has followed everything. Strongly read: a page that says
    "removed" may stand on it."""
    return reading.find(models.work_key(item_pk_of(entity)), _work)


def find_pending_among(entities: Collection[str]) -> dict[str, MirrorWork]:
    """:func:`find_pending` of many, by audit name; 100 to a request."""
    found = reading.get_many((models.work_key(item_pk_of(entity)) for entity in entities), _work)
    return {work.entity: work for work in found}


def page_of_pending(*, cursor: str | None = None, limit: int = 50) -> Page[MirrorWork]:
    """Everything that Cognito has not followed yet, people last, by name. An index read: it may lag."""
    return Listing("directory.mirror", DirectoryItem, _work, DirectoryItem.kind_index)(models.MIRROR_WORK, cursor=cursor, limit=limit)


def every_work() -> Iterator[MirrorWork | Failure]:
    """All that :func:`page_of_pending` has, to its end. What can't be read is told in its place: it must not hide the rest."""
    waiting = Listing[DirectoryItem, MirrorWork | Failure](
        "directory.mirror_sweep", DirectoryItem, _work, DirectoryItem.kind_index, stand_in=_unreadable
    )
    return waiting.every(models.MIRROR_WORK)


def take(entity: str, *, now: datetime, until: datetime) -> MirrorWork | None:
    """Lease the work until ``until``, which must be later than any lease that is free at ``now``; ``None`` when there is none, or another
    worker has it."""
    lease, beyond = DirectoryItem.lease_until, furthest(now, longest=until - now)
    return _leased(entity, until, lease.does_not_exist() | (lease <= _epoch(now)) | (lease > _epoch(beyond)))


def keep(work: MirrorWork, *, until: datetime) -> MirrorWork | None:
    """The same work as it stands, with a longer lease; ``None`` when the lease has been lost."""
    assert work.lease_until is not None
    return _leased(work.entity, until, DirectoryItem.lease_until == _epoch(work.lease_until))


def mark_forgotten(work: MirrorWork) -> bool:
    """Cognito has no user any more who was there when the person was deleted. False when the lease was lost."""
    return _write_own(work, [DirectoryItem.forget.remove()], _is_ours(work))


def finish(work: MirrorWork) -> bool:
    """Cognito has followed. False when there was a change meanwhile, or the lease was lost: then it may not have."""
    pk, sk = _key(work)
    try:
        transact([Remove(DirectoryItem, pk, _is_ours(work) & (DirectoryItem.token == work.token), sk)])
    except ConditionFailed:
        return False
    return True


def postpone(work: MirrorWork, *, due_at: datetime, attempts: int, error: str) -> None:
    """Give the work back after a failure. A change that came meanwhile stays due at once."""
    told = [
        DirectoryItem.due_at.set(_epoch(due_at)),
        DirectoryItem.attempts.set(attempts),
        DirectoryItem.error.set(error),
    ]
    if not _give_back(work, told, only_same=True):
        _give_back(work, [], only_same=False)


def _leased(entity: str, until: datetime, condition: Condition) -> MirrorWork | None:
    pk, sk = models.work_key(item_pk_of(entity))
    try:
        item = update_one(Change(DirectoryItem, pk, [DirectoryItem.lease_until.set(_epoch(until))], condition, sk))
    except ConditionFailed:
        return None
    assert isinstance(item, DirectoryItem)
    return read_as(_work, item)


def _give_back(work: MirrorWork, told: Sequence[Action], *, only_same: bool) -> bool:
    condition = _is_ours(work) & (DirectoryItem.token == work.token) if only_same else _is_ours(work)
    return _write_own(work, [DirectoryItem.lease_until.remove(), *told], condition)


def _write_own(work: MirrorWork, actions: list[Action], condition: Condition) -> bool:
    pk, sk = _key(work)
    try:
        update_one(Change(DirectoryItem, pk, actions, condition, sk))
    except ConditionFailed:
        return False
    return True


def _is_ours(work: MirrorWork) -> Condition:
    assert work.lease_until is not None
    return DirectoryItem.lease_until == _epoch(work.lease_until)


def _key(work: MirrorWork) -> models.Key:
    return models.work_key(item_pk_of(work.entity))


def _work(item: DirectoryItem) -> MirrorWork:
    return MirrorWork(
        entity=entity_of(models.item_pk_in(item)),
        token=item.token,
        since=datetime.fromisoformat(item.created_at),
        due_at=from_epoch(float(item.due_at)),
        lease_until=from_epoch(float(item.lease_until)) if item.lease_until is not None else None,
        attempts=int(item.attempts or 0),
        error=item.error or "",
        forgets=bool(item.forget),
    )


def _unreadable(raw: RawItem) -> Failure:
    return Failure(str(raw["pk"]["S"]), "It is not mirror work that can be read. Somebody else has changed it.")


def _epoch(moment: datetime) -> float:
    return round(moment.timestamp(), 3)
