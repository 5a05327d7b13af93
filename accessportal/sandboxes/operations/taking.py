"""Taking a sandbox: one transaction, one sandbox per key, and "none" only when none is free."""

from __future__ import annotations

import dataclasses
import random
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

import structlog

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch, whole_second
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Unreadable as UnreadableLine
from accessportal.kernel.pages import UnreadableItem, every
from accessportal.sandboxes import policy, queries
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.others import mended
from accessportal.sandboxes.operations.releasing import end, expire_loaded
from accessportal.sandboxes.operations.shared import held_anew, leaving_free_list, told, until_written
from accessportal.sandboxes.policy import Mending
from accessportal.sandboxes.states import Due, Holder, KeyRecord, NoneFree, Sandbox, Status, Taken, Unreadable
from accessportal.sandboxes.store import free_list, keys, pages, pool, rows
from accessportal.store.reading import ReadAhead
from accessportal.store.restores import HELD
from accessportal.store.transactions import Step
from accessportal.waiting.queries import get_line
from accessportal.waiting.states import SANDBOXES

log = structlog.get_logger(__name__)

# Candidates of the quick look, before the whole free list is gone through. Each that is tried costs time, and one is nearly always enough.
_MOST_QUICK = 2
# Lines that a quick look reads: those that it leaves are tried first by the next takes of this process. They need not be fresh, the write
# judges line and row (docs/decisions/0061-a-take-in-three-requests.md).
_QUICK_PAGE = 10
_kept: deque[free_list.FreeEntry] = deque(maxlen=_QUICK_PAGE)
_PAGE = 100
# Looks while sandboxes keep coming back and others keep being faster; after the first, each reads only where some came back.
_MOST_ROUNDS = 20
_KEY_ROWS = 20
_INDEX_LAG = timedelta(seconds=60)
_MOST_LATELY = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what was asked, by whom, when. ``key`` is that of the track alone. ``claims`` are those for whom it is (a track has
    none); ``further`` gives the steps that are written with the hand-over, for the sandbox as it is lent. ``check`` raises ``Unlisted`` for
    one that must not go out."""

    key: str
    track: str
    name_prefix: str
    duration_seconds: int | None
    actor: Actor
    now: datetime
    claims: Mapping[str, datetime] = field(default_factory=dict)
    further: Callable[[Sandbox], Sequence[Step]] = lambda _: ()
    check: Callable[[Sandbox], object] = lambda _: None

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
    ahead: ReadAhead | None = None,
    actor: Actor,
    now: datetime,
) -> Taken:
    """Lend a free sandbox to ``track`` until the lab, or ``duration_seconds``, is over. The same ``key`` gives the same answer until then;
    each track has keys of its own (docs/decisions/0034-keys-of-tracks-and-bound-tokens.md). With ``most_held`` so many of ``actor``'s stand
    at a time. ``ahead``: what of :func:`queries.read_for_take` was read before."""
    asked = Asked(
        key=policy.scoped_key(policy.check_programs_key(key, track=track), track=track),
        track=policy.check_programs_track(track),
        name_prefix=policy.check_text(name_prefix, field="name_prefix") if name_prefix else "",
        duration_seconds=policy.check_duration(duration_seconds),
        actor=actor,
        now=now,
    )
    try:
        return until_written(partial(_attempt, asked, most_held, ahead))
    except NoneFree as none:
        # Who wants a certain name may want what no sandbox has: that is no reason to refuse others their extension.
        if not name_prefix:
            pool.note_none(now)
        waiting = get_line(SANDBOXES).waiting
        if waiting:
            words = f"{none.message} {policy.rule_for_programs(waiting, programs_first=current().programs_first)}"
            raise NoneFree(words, next_return_at=none.next_return_at, returns=none.returns) from none
        raise


def _attempt(asked: Asked, most_held: int | None, ahead: ReadAhead | None) -> Taken:
    """:raises KeyOvertaken: when another request with the key, or of the same client, was faster."""
    seen = keys.look_up(asked.key, holder=asked.actor.name, ahead=ahead)
    record = seen.record
    if record is not None and record.is_open and record.track == asked.track:
        standing = _standing_for(record, asked)
        if standing is not None:
            return _repeat(record, standing, asked)
        seen = dataclasses.replace(seen, record=keys.get_key(asked.key))
    elif asked.key == asked.track:
        # Other programs know no other keys (seed 002).
        _adopt_for_key(asked)
    try:
        return Taken(lend_any(asked if most_held is None else _counted(asked, seen.holder, most_held), seen), is_repeat=False)
    except rows.FurtherFailed as failed:
        raise rows.KeyOvertaken from failed


def _counted(asked: Asked, holder: Holder, most_held: int) -> Asked:
    """Have the hand-over counted among those that the client holds; ``TOO_MANY_HELD`` when these are ``most_held``."""
    holds = dict(holder.holds)
    if len(holds) >= most_held:
        found = rows.look_all(holds)
        holds = {sandbox_id: fence for sandbox_id, fence in holds.items() if _is_held(found.get(sandbox_id), fence, asked.now)}
    if len(holds) >= most_held:
        most = "one sandbox" if most_held == 1 else f"{most_held} sandboxes"
        raise Conflict(f"This client holds {most}, as many as it may at a time. Give one back first.", code="TOO_MANY_HELD")
    return dataclasses.replace(asked, further=lambda lent: [keys.hold_for(holder, {**holds, lent.sandbox_id: str(lent.fence)})])


def _is_held(found: Sandbox | Unreadable | None, fence: str, now: datetime) -> bool:
    """Whether that hand-over still stands; of a row that can't be read nobody knows."""
    if not isinstance(found, Sandbox):
        return found is not None
    return found.status is Status.ALLOCATED and str(found.fence) == fence and not found.is_over(now)


def lend_any(asked: Asked, seen: keys.Seen) -> Sandbox:
    """Lend a free sandbox for the key as it was ``seen``. Not while a restore is unconfirmed: what looks free may be somebody's."""
    if seen.is_held:
        raise Unavailable(f"{HELD}. Try again later.", code="grants_held")
    return _quick(asked, seen.record) or _thorough(asked, seen.record)


def _standing_for(record: KeyRecord, asked: Asked) -> Sandbox | None:
    """Find the sandbox that the key stands for; ``None`` when that allocation is over, noted or not. In grace it may be given back and no
    longer be used: a track that takes anew gives it back by that."""
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
    for seen in pages.of_key(asked.key, cursor=None, limit=_KEY_ROWS).items:
        if isinstance(seen, Unreadable) or seen.status is not Status.ALLOCATED:
            continue
        sandbox = rows.look(seen.sandbox_id)
        # Adopted before, while the key stood for another sandbox, it is none of this key's business any more.
        if isinstance(sandbox, Sandbox) and _is_for(sandbox, asked) and policy.mending_of(sandbox) is Mending.ADOPT:
            mended(sandbox, actor=asked.actor, now=asked.now)
            raise rows.KeyOvertaken


def _is_for(sandbox: Sandbox, asked: Asked) -> bool:
    return (sandbox.key, sandbox.track) == (asked.key, asked.track)


def _quick(asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    """A line that is kept, or a candidate or two near a random place of the free list: many clients at once seldom meet there."""
    try:
        kept = [_kept.popleft()]
    except IndexError:
        kept = []
    sandbox = _first_lent(kept, asked, record)
    if sandbox is not None:
        return sandbox
    # Others lend what lies beside it, too.
    _kept.clear()
    shard = random.choice(free_list.shards())
    page = free_list.page(shard, cursor=None, limit=_QUICK_PAGE, after=str(uuid.uuid4()))
    entries = iter(page.items or free_list.page(shard, cursor=None, limit=_QUICK_PAGE).items)
    sandbox = _first_lent(islice(entries, _MOST_QUICK), asked, record)
    if sandbox is not None:
        _kept.extend(entries)
    return sandbox


def _thorough(asked: Asked, record: KeyRecord | None) -> Sandbox:
    """Try every place where a free sandbox can be, until one is taken or there was surely none: a shard that was read between two equal
    counts of its returns is empty at the second (docs/decisions/0021-free-list-and-key-items.md)."""
    shards = free_list.shards()
    unproved: Collection[int] = shards
    before = free_list.returns()
    for _ in range(_MOST_ROUNDS):
        for shard in random.sample(list(unproved), len(unproved)):
            sandbox = _first_lent(free_list.every_entry(shard, past=_pass_over), asked, record)
            if sandbox is not None:
                return sandbox
        after = free_list.returns()
        unproved = [shard for shard in shards if after[shard] != before[shard]]
        if not unproved:
            return _last_chance(asked, record, after)
        before = after
    raise Unavailable("Sandboxes come and go faster than this request could take one. Try again.", code="pool_contended")


def _last_chance(asked: Asked, record: KeyRecord | None, returns: tuple[int, ...]) -> Sandbox:
    """Try what other programs made available, which stands in no free list."""
    for sandbox_id in _shown_as_free(asked):
        sandbox = _try_row(sandbox_id, asked, record)
        if sandbox is not None:
            return sandbox
    if asked.name_prefix:
        # The next to return may have any name, and the due index tells none.
        words = f"No sandbox whose name begins with “{asked.name_prefix}” is free at the moment."
        raise NoneFree(words, next_return_at=None, returns=returns)
    raise NoneFree("No sandbox is free at the moment.", next_return_at=queries.next_return_at(now=asked.now), returns=returns)


def _shown_as_free(asked: Asked) -> Iterator[str]:
    """List what the index shows as available, the likeliest first. It lags: of those that changed lately only some are tried, or each
    "none" of a busy moment would read them all for nothing."""
    lately = []
    for seen in every(lambda cursor: pages.by_status(Status.AVAILABLE, cursor=cursor, limit=_PAGE)):
        if not isinstance(seen, Sandbox) or not seen.name.startswith(asked.name_prefix):
            continue
        if policy.is_unlisted(seen) or not is_recent(seen.updated_at, now=asked.now, within=_INDEX_LAG):
            yield seen.sandbox_id
        else:
            lately.append(seen.sandbox_id)
    yield from random.sample(lately, min(_MOST_LATELY, len(lately)))


def _pass_over(line: UnreadableLine) -> None:
    """Others are free, and the next sync names this one, too."""
    log.warning("sandboxes.line_unreadable", key=line.key, why=line.why)


def _first_lent(entries: Iterable[free_list.FreeEntry], asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    lent = (try_entry(entry, asked, record) for entry in entries)
    return next((sandbox for sandbox in lent if sandbox is not None), None)


def try_entry(entry: free_list.FreeEntry, asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    """Lend what a line of the free list tells of. ``None``: somebody else was faster, or has it."""
    if not entry.name.startswith(asked.name_prefix):
        return None
    try:
        if entry.sandbox is not None:
            return _lend(entry.sandbox, asked, record, free_step=free_list.take(entry.sandbox_id), is_from_line=True)
    except rows.Unlisted:
        return None
    except rows.Overtaken:
        # The row is not as its line says: another program has changed it.
        pass
    sandbox = rows.look(entry.sandbox_id)
    if isinstance(sandbox, Unreadable):
        # It keeps its line: mended by hand, it is free as before.
        return None
    if sandbox is None or sandbox.status is not Status.AVAILABLE:
        free_list.drop(entry)
        return None
    with suppress(rows.Overtaken):
        return _lend(sandbox, asked, record, free_step=free_list.take(entry.sandbox_id))
    return None


def _try_row(sandbox_id: str, asked: Asked, record: KeyRecord | None) -> Sandbox | None:
    found = rows.look(sandbox_id)
    if not isinstance(found, Sandbox) or found.status is not Status.AVAILABLE:
        return None
    with suppress(rows.Overtaken, UnreadableItem):
        sandbox = mended(found, actor=asked.actor, now=asked.now)
        return _lend(sandbox, asked, record, free_step=leaving_free_list(sandbox))
    return None


def _lend(sandbox: Sandbox, asked: Asked, record: KeyRecord | None, *, free_step: Step | None, is_from_line: bool = False) -> Sandbox:
    """:raises Overtaken: when somebody else was faster."""
    asked.check(sandbox)
    lent = lent_to(sandbox, asked)
    return rows.change(
        sandbox,
        lent,
        draft=told_of_taking(lent),
        actor=asked.actor,
        now=asked.now,
        is_from_line=is_from_line,
        key_step=keys.open_key(record, key=asked.key, request_hash=asked.hash, sandbox=lent),
        free_step=free_step,
        further=asked.further(lent),
    )


def lent_to(sandbox: Sandbox, asked: Asked) -> Sandbox:
    """The free sandbox as it is when it is lent for what was asked."""
    allocated_at = whole_second(asked.now)
    if asked.claims:
        expires_at = policy.end_of(allocated_at, sandbox.lab_duration_hours, asked.claims)
    else:
        expires_at = policy.deadline(allocated_at, sandbox.lab_duration_hours, asked.duration_seconds)
    grace_ends_at = expires_at + timedelta(seconds=current().grace_seconds)
    return dataclasses.replace(
        held_anew(sandbox, asked.track),
        status=Status.ALLOCATED,
        allocated_at=allocated_at,
        track=asked.track,
        key=asked.key,
        fence=rows.continued(sandbox).fence + 1,
        lent_at=allocated_at,
        expires_at=expires_at,
        grace_ends_at=grace_ends_at,
        due=Due.EXPIRE,
        due_at=grace_ends_at,
        claims=asked.claims,
    )


def told_of_taking(lent: Sandbox) -> Draft:
    """The event of a hand-over."""
    assert lent.expires_at is not None
    expires_at = to_epoch(lent.expires_at)
    return told("sandbox.taken", lent, track=lent.track, key=lent.sent_key, expires_at=expires_at, status=lent.status.value)
