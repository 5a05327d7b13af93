"""Taking a sandbox: one transaction, one sandbox per key, and "none" only when none is free."""

from __future__ import annotations

import dataclasses
import random
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch, whole_second
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Page, every
from accessportal.sandboxes import policy, queries, store
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.releasing import end, expire_loaded
from accessportal.sandboxes.operations.shared import held_anew, mended, told, until_written
from accessportal.sandboxes.policy import Mending
from accessportal.sandboxes.states import Claim, Due, KeyRecord, NoneFree, Sandbox, Status, Taken, Unreadable
from accessportal.store.restores import HELD, held_restore
from accessportal.store.transactions import Step

# Candidates of the quick look, before the whole free list is gone through.
_QUICK_PAGE = 6
_PAGE = 100
# Looks while sandboxes keep coming back and others keep being faster; after the first, each reads only where some came back.
_MOST_ROUNDS = 20
_KEY_ROWS = 20
_INDEX_LAG = timedelta(seconds=60)
_MOST_LATELY = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what was asked, by whom, when. ``key`` is that of the track alone, ``sent_key`` as its client sent it. ``claims``
    are those for whom it is (a track has none); ``further`` gives the steps that are written with the hand-over, for the sandbox
    as it is lent."""

    key: str
    sent_key: str
    track: str
    name_prefix: str
    duration_seconds: int | None
    actor: Actor
    now: datetime
    claims: tuple[Claim, ...] = ()
    further: Callable[[Sandbox], Sequence[Step]] = lambda _: ()

    @property
    def hash(self) -> str:
        return policy.request_hash(track=self.track, name_prefix=self.name_prefix, duration_seconds=self.duration_seconds)


def take(
    *,
    key: str,
    track: str,
    name_prefix: str = "",
    duration_seconds: int | None = None,
    most_held: int | None = None,
    actor: Actor,
    now: datetime,
) -> Taken:
    """A free sandbox is lent to ``track``, until the lab's duration or ``duration_seconds`` is over, whichever is sooner.

    The same ``key`` gives the same answer until the allocation is over (given back, its deadline, quarantined); then the next
    take with it is a new one. In grace that gives the old sandbox back. Each track has keys of its own.

    With ``most_held`` only so many of those that ``actor`` took stand at a time.

    ``name_prefix`` keeps to sandboxes whose name begins so, at the price of reading the free list.

    :raises InvalidRequest: for a key, track, prefix or duration that breaks a rule.
    :raises Conflict: ``IDEMPOTENCY_MISMATCH`` when the key stands for another request, ``TOO_MANY_HELD``.
    :raises NoneFree: when there was a moment during this call at which none was free.
    :raises Unavailable: when the store did not answer, or others were faster too often; the same key may be tried again.
    """
    asked = Asked(
        key=policy.scoped_key(policy.check_programs_key(key, track=track), track=track),
        sent_key=key,
        track=policy.check_programs_track(track),
        name_prefix=policy.check_text(name_prefix, field="name_prefix") if name_prefix else "",
        duration_seconds=policy.check_duration(duration_seconds),
        actor=actor,
        now=now,
    )
    try:
        return until_written(partial(_attempt, asked, most_held))
    except NoneFree:
        # Who wants a certain name may want what no sandbox has: that is no reason to refuse others their extension.
        if not name_prefix:
            store.note_none(now)
        raise


def _attempt(asked: Asked, most_held: int | None) -> Taken:
    """:raises KeyOvertaken: when another request with the key, or of the same client, was faster."""
    record = store.get_key(asked.key)
    known = record
    if asked.key != asked.sent_key and (record is None or not record.is_open):
        # The version before kept the keys of all tracks in one space, as other programs do.
        known = store.get_key(asked.sent_key)
    if known is not None and known.is_open and known.track == asked.track:
        standing = _standing_for(known, asked)
        if standing is not None:
            return _repeat(known, standing, asked)
        record = store.get_key(asked.key)
    if record is None or not record.is_open:
        _adopt_for_key(asked)
    try:
        return Taken(lend_any(asked if most_held is None else _counted(asked, most_held), record), is_repeat=False)
    except store.FurtherFailed as failed:
        raise store.KeyOvertaken from failed


def _counted(asked: Asked, most_held: int) -> Asked:
    """``asked``, whose sandbox is counted with the hand-over among those that the client holds.

    :raises Conflict: ``TOO_MANY_HELD``, when these are ``most_held``.
    """
    holder = store.get_holder(asked.actor.name)
    holds = dict(holder.holds)
    if len(holds) >= most_held:
        holds = {sandbox_id: fence for sandbox_id, fence in holds.items() if _is_held(sandbox_id, fence, asked.now)}
    if len(holds) >= most_held:
        most = "one sandbox" if most_held == 1 else f"{most_held} sandboxes"
        raise Conflict(f"This client holds {most}, as many as it may at a time. Give one back first.", code="TOO_MANY_HELD")
    return dataclasses.replace(asked, further=lambda lent: [store.hold_for(holder, {**holds, lent.sandbox_id: str(lent.fence)})])


def _is_held(sandbox_id: str, fence: str, now: datetime) -> bool:
    """Whether that hand-over still stands; of a row that can't be read nobody knows."""
    found = store.look(sandbox_id)
    if not isinstance(found, Sandbox):
        return found is not None
    return found.status is Status.ALLOCATED and str(found.fence) == fence and not found.is_over(now)


def lend_any(asked: Asked, record: KeyRecord | None) -> Sandbox:
    """A free sandbox, lent now; the key, which is as ``record`` says, stands for it.

    :raises NoneFree: when there was a moment at which none was free.
    :raises KeyOvertaken: when another request with the key was faster.
    :raises FurtherFailed: when one of the further steps did not hold.
    :raises Unavailable: also while a restore of the tables is not confirmed: what looks free may be somebody's.
    """
    if held_restore() is not None:
        raise Unavailable(f"{HELD}. Try again later.", code="grants_held")
    return _quick(asked, record) or _thorough(asked, record)


def _standing_for(record: KeyRecord, asked: Asked) -> Sandbox | None:
    """The sandbox that the key stands for; ``None`` when that allocation is over, whether or not anybody has noted it.

    In grace a sandbox may be given back, and no longer be used: a track that takes anew then gives it back by that.
    """
    sandbox = queries.standing(record)
    if sandbox is None:
        return None
    if sandbox.is_over(asked.now):
        expire_loaded(sandbox, actor=asked.actor, now=asked.now)
        return None
    if sandbox.track == asked.track and policy.is_in_grace(sandbox, asked.now):
        end(sandbox, draft_data={}, actor=asked.actor, now=asked.now)
        return None
    return sandbox


def _repeat(record: KeyRecord, sandbox: Sandbox, asked: Asked) -> Taken:
    # An allocation of another program tells its track alone.
    is_same = record.request_hash == asked.hash if record.request_hash else record.track == asked.track
    if not is_same:
        raise Conflict(
            "This key was used for another request, and its sandbox is still lent. Use a new key, or send the same request again.",
            code="IDEMPOTENCY_MISMATCH",
            present=sandbox,
        )
    return Taken(sandbox, is_repeat=True)


def _adopt_for_key(asked: Asked) -> None:
    """:raises KeyOvertaken: when another program has allocated a sandbox for this key: adopted now, the key's own item tells."""
    for seen in store.page_of_key(asked.sent_key, cursor=None, limit=_KEY_ROWS).items:
        if isinstance(seen, Unreadable) or seen.status is not Status.ALLOCATED:
            continue
        sandbox = store.look(seen.sandbox_id)
        # Adopted before, while the key stood for another sandbox, it is none of this key's business any more.
        if isinstance(sandbox, Sandbox) and _is_for(sandbox, asked) and policy.mending_of(sandbox) is Mending.ADOPT:
            mended(sandbox, actor=asked.actor, now=asked.now)
            raise store.KeyOvertaken


def _is_for(sandbox: Sandbox, asked: Asked) -> bool:
    return (sandbox.key, sandbox.track) == (asked.sent_key, asked.track)


def _quick(asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    """A candidate or two near a random place of the free list: many clients at once seldom meet there."""
    shard = random.choice(store.free_shards())
    page = store.page_free(shard, cursor=None, limit=_QUICK_PAGE, after=str(uuid.uuid4()))
    entries = page.items or store.page_free(shard, cursor=None, limit=_QUICK_PAGE).items
    return _first_lent(entries, asked, record)


def _thorough(asked: Asked, record: KeyRecord | None) -> Sandbox:
    """Every place where a free sandbox can be, until one is taken or there was surely none.

    A shard that was read between two equal counts of its returns is empty at the second count: what was free in it was met,
    and others took it. When that holds for all shards at one count, none was free at that moment.
    """
    shards = store.free_shards()
    unproved: Collection[int] = shards
    before = store.returns()
    for _ in range(_MOST_ROUNDS):
        for shard in random.sample(list(unproved), len(unproved)):
            sandbox = _first_lent(every(partial(_free_page, shard)), asked, record)
            if sandbox is not None:
                return sandbox
        after = store.returns()
        unproved = [shard for shard in shards if after[shard] != before[shard]]
        if not unproved:
            return _last_chance(asked, record)
        before = after
    raise Unavailable("Sandboxes come and go faster than this request could take one. Try again.", code="pool_contended")


def _last_chance(asked: Asked, record: KeyRecord | None) -> Sandbox:
    """What other programs made available stands in no free list.

    :raises NoneFree: when there is nothing of that sort either.
    """
    for sandbox_id in _shown_as_free(asked):
        sandbox = _try_row(sandbox_id, asked, record)
        if sandbox is not None:
            return sandbox
    if asked.name_prefix:
        # The next to return may have any name, and the due index tells none.
        raise NoneFree(f"No sandbox whose name begins with “{asked.name_prefix}” is free at the moment.", next_return_at=None)
    raise NoneFree("No sandbox is free at the moment.", next_return_at=queries.next_return_at(now=asked.now))


def _shown_as_free(asked: Asked) -> Iterator[str]:
    """The ids of what the index shows as available, the likeliest first.

    The index lags: a row of ours that was just taken still shows. Of those that changed lately only some are tried, or each
    "none" of a busy moment would read them all for nothing; one of them may be free by another program's hand.
    """
    lately = []
    for seen in every(lambda cursor: store.page_by_status(Status.AVAILABLE, cursor=cursor, limit=_PAGE)):
        if not isinstance(seen, Sandbox) or not seen.name.startswith(asked.name_prefix):
            continue
        if policy.is_unlisted(seen) or not is_recent(seen.updated_at, now=asked.now, within=_INDEX_LAG):
            yield seen.sandbox_id
        else:
            lately.append(seen.sandbox_id)
    yield from random.sample(lately, min(_MOST_LATELY, len(lately)))


def _free_page(shard: int, cursor: str | None) -> Page[store.FreeEntry]:
    return store.page_free(shard, cursor=cursor, limit=_PAGE)


def _first_lent(entries: Iterable[store.FreeEntry], asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    lent = (_try_entry(entry, asked, record) for entry in entries)
    return next((sandbox for sandbox in lent if sandbox is not None), None)


def _try_entry(entry: store.FreeEntry, asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    if not entry.name.startswith(asked.name_prefix):
        return None
    sandbox = store.look(entry.sandbox_id)
    if isinstance(sandbox, Unreadable):
        # It keeps its line: mended by hand, it is free as before.
        return None
    if sandbox is None or sandbox.status is not Status.AVAILABLE:
        # Taken at this moment, or another program allocated it and left the line behind.
        store.drop_free(entry)
        return None
    return _lend(sandbox, asked, record, is_listed=True)


def _try_row(sandbox_id: str, asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    found = store.look(sandbox_id)
    if not isinstance(found, Sandbox) or found.status is not Status.AVAILABLE:
        return None
    try:
        sandbox = mended(found, actor=asked.actor, now=asked.now)
    except store.Overtaken:
        return None
    return _lend(sandbox, asked, record, is_listed=store.free_entry(sandbox_id) is not None)


def _lend(sandbox: Sandbox, asked: Asked, record: KeyRecord | None, *, is_listed: bool) -> Sandbox | None:
    """``None``: somebody else was faster."""
    allocated_at = whole_second(asked.now)
    if asked.claims:
        expires_at = policy.end_of(allocated_at, sandbox.lab_duration_hours, asked.claims)
    else:
        expires_at = policy.deadline(allocated_at, sandbox.lab_duration_hours, asked.duration_seconds)
    grace_ends_at = expires_at + timedelta(seconds=current().grace_seconds)
    lent = dataclasses.replace(
        held_anew(sandbox, asked.track),
        status=Status.ALLOCATED,
        allocated_at=allocated_at,
        track=asked.track,
        key=asked.key,
        fence=store.continued(sandbox).fence + 1,
        lent_at=allocated_at,
        expires_at=expires_at,
        grace_ends_at=grace_ends_at,
        due=Due.EXPIRE,
        due_at=grace_ends_at,
        claims=asked.claims,
    )
    draft = told("sandbox.taken", lent, track=asked.track, key=asked.sent_key, expires_at=to_epoch(expires_at), status=lent.status.value)
    try:
        return store.change(
            sandbox,
            lent,
            draft=draft,
            actor=asked.actor,
            now=asked.now,
            key_step=store.open_key(record, key=asked.key, request_hash=asked.hash, sandbox=lent),
            free_step=store.take_free(sandbox.sandbox_id) if is_listed else None,
            further=asked.further(lent),
        )
    except store.Overtaken:
        return None
