"""Facts of the pool as a whole: the counts of statuses over time, the last look at the provider, and when somebody got none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from pynamodb.expressions.update import Action

from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import SKEW, is_recent
from accessportal.kernel.pages import Page
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import POOL_ENTITY, LastSync, Stats, Status, Unreadable
from accessportal.sandboxes.store.rows import Overtaken
from accessportal.store.listing import Listing
from accessportal.store.reading import get_item
from accessportal.store.transactions import ConditionFailed, Insert, Remove, Step, Upsert, transact, update_one

# A count of the pool is kept at most once in so many minutes.
COUNT_MINUTES = 5
# So many rows that can't be read are named; an item must stay small.
_MOST_UNREADABLE = 200
# Clients that ask an empty pool again and again must not all write the same item.
_NOTE_EVERY = timedelta(seconds=30)


def keep_counts(stats: Stats) -> None:
    """What a job has counted; the newest count wins."""
    pk, sk = models.counts_key()
    at = to_epoch(stats.counted_at)
    broken = json.dumps([[one.sandbox_id, one.external_id] for one in stats.unreadable[:_MOST_UNREADABLE]])
    actions = [SandboxItem.counts_at.set(at), SandboxItem.counts.set(_counts_text(stats)), SandboxItem.unreadable.set(broken)]
    # One from further ahead was left by a clock that was wrong.
    ahead = to_epoch(stats.counted_at + SKEW)
    newer = SandboxItem.counts_at.does_not_exist() | (SandboxItem.counts_at <= at) | (SandboxItem.counts_at > ahead)
    with contextlib.suppress(ConditionFailed):
        update_one(Upsert(SandboxItem, pk, actions, newer, range_key=sk))


def last_counts() -> Stats | None:
    """How many sandboxes were in each status when a job last counted; ``None`` before the first count."""
    item = get_item(SandboxItem, *models.counts_key())
    return None if item is None or item.counts is None else _stats_of(item)


def add_count(stats: Stats) -> None:
    """It is one of the counts over time, unless there is one of the same five minutes already."""
    item = SandboxItem(*models.count_key(_slot(stats.counted_at)), counts_at=to_epoch(stats.counted_at), counts=_counts_text(stats))
    with contextlib.suppress(ConditionFailed):
        transact([Insert(item)])


def page_counts(*, since: datetime, until: datetime, cursor: str | None, limit: int) -> Page[Stats]:
    """The counts of the five minutes that ``since`` lies in to those of ``until``, oldest first."""
    (pk, first), (_, last) = models.count_key(_slot(since)), models.count_key(until)
    counts = Listing("sandboxes.counts", SandboxItem, _stats_of)
    return counts(pk, cursor=cursor, limit=limit, where=SandboxItem.sk.between(first, last), bound=f"{first}:{last}")


def forget_counts(*, until: datetime, limit: int) -> int:
    """At most ``limit`` counts that are not newer than ``until`` are gone; says how many."""
    old = page_counts(since=from_epoch(0), until=until, cursor=None, limit=limit).items
    for stats in old:
        pk, sk = models.count_key(_slot(stats.counted_at))
        with contextlib.suppress(ConditionFailed):
            transact([Remove(SandboxItem, pk, SandboxItem.counts_at == to_epoch(stats.counted_at), range_key=sk)])
    return len(old)


def _slot(moment: datetime) -> datetime:
    return moment.replace(minute=moment.minute - moment.minute % COUNT_MINUTES, second=0, microsecond=0)


def _counts_text(stats: Stats) -> str:
    return json.dumps({status.value: number for status, number in stats.counts.items()}, sort_keys=True)


def _stats_of(item: SandboxItem) -> Stats:
    counts, unreadable = json.loads(item.counts or "{}"), json.loads(item.unreadable or "[]")
    return Stats(
        from_epoch(item.counts_at or 0),
        {Status(name): number for name, number in counts.items()},
        tuple(Unreadable(sandbox_id, external_id) for sandbox_id, external_id in unreadable),
    )


def keep_sync(sync: LastSync, *, draft: Draft | None, actor: Actor, now: datetime) -> None:
    """Keep the last look at the provider's list; one that was stopped has an event (``draft``) on the chain of the pool itself."""
    actions: list[Action] = [SandboxItem.last_synced.set(to_epoch(sync.at)), SandboxItem.listed.set(sync.listed)]
    actions.append(SandboxItem.stopped.set(sync.stopped) if sync.stopped else SandboxItem.stopped.remove())
    actions.append(SandboxItem.shortest_lab.set(sync.shortest_lab_seconds))
    try:
        transact(pool_steps(actions, draft=draft, actor=actor, now=now))
    except ConditionFailed as error:
        raise Overtaken from error


def pool_steps(actions: Sequence[Action], *, draft: Draft | None, actor: Actor, now: datetime) -> list[Step]:
    """The steps that change the pool's own row, as it is now, and put an event (``draft``) on its chain."""
    pk, sk = models.sync_key()
    version, head = pool_head()
    steps: list[Step] = []
    told: list[Action] = []
    if draft is not None:
        event = prepare_event(draft, entity=POOL_ENTITY, sequence=version + 1, prev_hash=head, actor=actor, now=now)
        told = [SandboxItem.version.set(version + 1), SandboxItem.audit_head.set(event.head)]
        steps.append(event.step)
    unchanged = SandboxItem.version == version if version else SandboxItem.version.does_not_exist()
    return [Upsert(SandboxItem, pk, [*actions, *told], unchanged, range_key=sk), *steps]


def last_sync() -> LastSync | None:
    """The last look at the provider's list; ``None`` before the first."""
    item = get_item(SandboxItem, *models.sync_key())
    if item is None or item.last_synced is None:
        return None
    return LastSync(from_epoch(item.last_synced), int(item.listed or 0), item.stopped or "", int(item.shortest_lab or 0))


def pool_head() -> tuple[int, str]:
    """Version and hash of the chain of the pool itself."""
    item = get_item(SandboxItem, *models.sync_key())
    return (0, "") if item is None else (int(item.version or 0), item.audit_head or "")


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
