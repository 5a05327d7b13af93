"""Mirror work: one item for each person or group that Cognito must still follow, written with the change itself.

An item goes only when Cognito was proved equal and its ``token`` is still the one that was there before the proof: every change
gives it a new one. ``leaseUntil`` keeps two workers from converging the same person or group at once; it grows with every lease,
so it also says whose the lease is.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.config import current
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import MirrorFailure, MirrorWork, group_entity, person_entity
from accessportal.directory.store import reading
from accessportal.directory.store.conversion import iso
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import Page
from accessportal.store.listing import Listing
from accessportal.store.reading import RawItem
from accessportal.store.transactions import Change, ConditionFailed, Remove, Step, Upsert, transact, update_one

_CHUNK = 25
_WHATEVER = DirectoryItem.pk.exists() | DirectoryItem.pk.does_not_exist()


def work_step(*, item_pk: str, now: datetime, forgets: bool = False) -> list[Step]:
    """The step that asks for the mirroring of the person or group whose own partition is ``item_pk``; none without a pool.

    ``forgets``: the user in Cognito must go in any case, also if the address has a new owner when the work is done.

    It belongs in the transaction of every change that Cognito must follow. A worker that is at it already sees the new
    token when it ends, and looks again.
    """
    return [_asking(item_pk, now, forgets=forgets)] if current().user_pool_id else []


def deletion_step(*, item_pk: str, now: datetime, is_over: bool) -> list[Step]:
    """The step of a deletion in several parts: the work by which the sweep finds what was begun, with and without a pool.

    ``is_over``: the person is gone. Only a pool still has something to follow then.
    """
    if current().user_pool_id or not is_over:
        return [_asking(item_pk, now, forgets=is_over)]
    pk, sk = models.work_key(item_pk)
    return [Remove(DirectoryItem, pk, _WHATEVER, sk)]


def ask(entities: Collection[str], *, now: datetime) -> None:
    """Ask for the mirroring of these people and groups, although none of them was changed."""
    wanted = sorted(set(entities))
    for start in range(0, len(wanted), _CHUNK):
        transact([_asking(item_pk_of(entity), now, forgets=False) for entity in wanted[start : start + _CHUNK]])


def find(entity: str) -> MirrorWork | None:
    """Strongly read; ``None`` when Cognito has followed."""
    return reading.find(models.work_key(item_pk_of(entity)), _work)


def find_among(entities: Collection[str]) -> tuple[MirrorWork, ...]:
    """Those of ``entities`` that Cognito has not followed, strongly read; 100 to a request."""
    return tuple(reading.get_many((models.work_key(item_pk_of(entity)) for entity in entities), _work))


def page(*, cursor: str | None, limit: int) -> Page[MirrorWork]:
    """All that waits, people last, by name. An index read: it may lag."""
    return Listing("directory.mirror", DirectoryItem, _work, DirectoryItem.kind_index)(models.MIRROR_WORK, cursor=cursor, limit=limit)


def every_work() -> Iterator[MirrorWork | MirrorFailure]:
    """All that :func:`page` has, to its end. What can't be read is told in its place: it must not hide the rest."""
    waiting = Listing[DirectoryItem, MirrorWork | MirrorFailure](
        "directory.mirror_sweep", DirectoryItem, _work, DirectoryItem.kind_index, stand_in=_unreadable
    )
    return waiting.every(models.MIRROR_WORK)


def take(entity: str, *, now: datetime, until: datetime) -> MirrorWork | None:
    """The work with a lease until ``until``; ``None`` when there is none, or when another worker has it.

    ``until`` must be later than any lease could be that is free at ``now``.
    """
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


def item_pk_of(entity: str) -> str:
    """The partition of a person or a group that is named as in the audit log."""
    kind, _, name = entity.partition("#")
    return models.person_pk(name) if kind == "person" else models.group_pk(name)


def _asking(item_pk: str, now: datetime, *, forgets: bool) -> Upsert:
    pk, sk = models.work_key(item_pk)
    actions: list[Action] = [
        DirectoryItem.si_key1.set(models.MIRROR_WORK),
        DirectoryItem.token.set(secrets.token_hex(8)),
        DirectoryItem.due_at.set(_epoch(now)),
        DirectoryItem.attempts.set(0),
        DirectoryItem.error.remove(),
        DirectoryItem.created_at.set(DirectoryItem.created_at | iso(now)),
    ]
    if forgets:
        actions.append(DirectoryItem.forget.set(True))
    return Upsert(DirectoryItem, pk, actions, _WHATEVER, sk)


def _leased(entity: str, until: datetime, condition: Condition) -> MirrorWork | None:
    pk, sk = models.work_key(item_pk_of(entity))
    try:
        item = update_one(Change(DirectoryItem, pk, [DirectoryItem.lease_until.set(_epoch(until))], condition, sk))
    except ConditionFailed:
        return None
    assert isinstance(item, DirectoryItem)
    return reading.read_as(_work, item)


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


def _unreadable(raw: RawItem) -> MirrorFailure:
    return MirrorFailure(str(raw["pk"]["S"]), "It is not mirror work that can be read. Somebody else has changed it.")


def entity_of(item_pk: str) -> str:
    """The person or group of a partition, named as in the audit log."""
    kind = person_entity if models.is_person_pk(item_pk) else group_entity
    return kind(item_pk.partition(":")[2])


def _epoch(moment: datetime) -> float:
    return round(moment.timestamp(), 3)
