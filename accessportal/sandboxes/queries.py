"""Reads of the pool for the faces and for other rooms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page, every
from accessportal.sandboxes import effects, ledger, policy, pool_check
from accessportal.sandboxes.config import current
from accessportal.sandboxes.ledger import Problem, Receipt
from accessportal.sandboxes.states import (
    POOL_ENTITY,
    Due,
    KeyRecord,
    NoSuchRun,
    NoSuchSandbox,
    Run,
    RunDue,
    Sandbox,
    Stats,
    Status,
    Unreadable,
    Wanted,
    entity_of,
)
from accessportal.sandboxes.store import free_list, pages, pool, rows, runs
from accessportal.sandboxes.store import keys as key_items
from accessportal.store.reading import ItemKey
from accessportal.upstream.errors import UpstreamError
from accessportal.upstream.provider import Provider, UpstreamSandbox
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import SANDBOXES, Expected, Place, Standing

# From the moment at which something is due to the end of the job that does it: jobs run every minute.
_RUN_SECONDS = 60
_RECENT = 50
_MOST_READS = 5
_MANY_COUNTS = 1_000
_SOME = 20
# The ends that an expected time is told from: those nearest are what counts.
_MOST_ENDS = 200

find = rows.get
every_sandbox = pages.every_sandbox
problems_beside_rows = pool_check.problems_beside_rows
stats = pool.last_counts
last_sync = pool.last_sync
none_told_at = pool.none_told_at
may_operate = policy.may_operate


def get(*, sandbox_id: str) -> Sandbox:
    """Read one sandbox strongly. An allocation that another program wrote is shown with the deadlines that it gets."""
    sandbox = rows.get(sandbox_id)
    if sandbox is None:
        raise NoSuchSandbox
    return _shown_as_lent(sandbox)


def is_as_left(sandbox: Sandbox) -> bool:
    """Whether no other program has changed it since the portal has."""
    return policy.mending_of(sandbox) is policy.Mending.NOTHING


def list_by_status(*, status: Status, cursor: str | None = None, limit: int = 50) -> Page[Sandbox | Unreadable]:
    """Those in a status, longest lent first (the seed's StatusIndex), each with the deadlines that :func:`get` shows."""
    return _page_as_lent(pages.by_status(status, cursor=cursor, limit=limit))


def list_of_track(*, track: str, cursor: str | None = None, limit: int = 50) -> Page[Sandbox | Unreadable]:
    """What a track holds, and what it held last and is not cleaned yet, newest first (the seed's TrackIndex); as :func:`get`."""
    return _page_as_lent(pages.of_track(track, cursor=cursor, limit=limit))


def _page_as_lent(page: Page[Sandbox | Unreadable]) -> Page[Sandbox | Unreadable]:
    return Page(tuple(_shown_as_lent(one) if isinstance(one, Sandbox) else one for one in page.items), page.next_cursor)


def _shown_as_lent(sandbox: Sandbox) -> Sandbox:
    return policy.as_lent(sandbox, grace_seconds=current().grace_seconds)


def find_by_key(*, key: str) -> Sandbox | None:
    """The sandbox that ``key`` stands for, strongly read; ``None`` when there is none, or that allocation has been
    ended (``is_over`` tells of one whose time is up and that no job has come by yet)."""
    return standing(key_items.get_key(key))


def find_by_keys(*, keys: Iterable[str]) -> dict[str, Sandbox]:
    """As :func:`find_by_key` for those of the keys that stand for one, in two requests."""
    records = {key: record for key, record in key_items.get_keys(keys).items() if record is not None and record.is_open}
    found = rows.get_all(record.sandbox_id for record in records.values())
    return {key: sandbox for key, record in records.items() if policy.stands_for(record, sandbox := found[record.sandbox_id]) and sandbox}


def standing(record: KeyRecord | None) -> Sandbox | None:
    """The sandbox that a key stands for as its item says, strongly read; as :func:`find_by_key`."""
    if record is None or not record.is_open:
        return None
    sandbox = rows.get(record.sandbox_id)
    return sandbox if policy.stands_for(record, sandbox) else None


def read_for_take(*, key: str, track: str, actor: Actor) -> list[ItemKey]:
    """The items with which ``take`` begins, for who can read them with others."""
    return key_items.looked_up(policy.scoped_key(key, track=track), holder=actor.name)


def read_for_release(*, sandbox_id: str) -> list[ItemKey]:
    """The item with which ``release`` begins, as :func:`read_for_take`."""
    return [rows.key_of(sandbox_id)]


def shortest_lab_seconds() -> int:
    """For how long every sandbox of the pool can be lent, by the last look at the provider; before the first, the setting."""
    found = last_sync()
    return (found.shortest_lab_seconds if found else 0) or current().longest_hours * 3600


def next_return_at(*, now: datetime) -> datetime | None:
    """When the next sandbox is expected to be free again; ``None`` when none is lent or being cleaned."""
    moments = [moment for due in (Due.CLEAN, Due.EXPIRE) for moment in itertools.islice(_due_moments(due), 1)]
    return max(now, min(moments)) + timedelta(seconds=_RUN_SECONDS) if moments else None


def _due_moments(due: Due) -> Iterator[datetime]:
    """When something is due, earliest first. The first is nearly always all that is asked for, so one page has one."""
    for one in every(lambda cursor: pages.due(due, until=None, cursor=cursor, limit=_SOME if cursor else 1)):
        if isinstance(one, Sandbox) and one.due_at is not None:
            yield one.due_at


def wanted_at(place: Place) -> Wanted:
    """:raises UnreadableItem: when somebody else has changed it."""
    try:
        wants = place.wants
        return Wanted(str(wants["key"]), str(wants["track"]), str(wants["name_prefix"]), int(wants["most_held"]))
    except (LookupError, TypeError, ValueError) as error:
        raise waiting.unreadable_wants(place, error) from error


def find_in_line(*, claim: str) -> Standing | None:
    """The place in which a person's claim waits for a sandbox, and who is before it; ``None``: it does not wait.

    :raises UnreadableItem: when somebody else has changed it.
    """
    standing = waiting.find(line=SANDBOXES, claim=claim, compete=_compete)
    if standing is not None:
        wanted_at(standing.place)
    return standing


def _compete(own: Place, other: Place) -> bool:
    """Whether one sandbox can be what both wait for."""
    mine, theirs = wanted_at(own).name_prefix, wanted_at(other).name_prefix
    return mine.startswith(theirs) or theirs.startswith(mine)


def expected_turn(*, standing: Standing, now: datetime) -> Expected | None:
    """When a sandbox is expected for a place in the line, by the ends of what is lent and what is being cleaned; ``None``: not known, as
    always where programs may be faster."""
    if current().programs_first:
        return None
    prefix = wanted_at(standing.place).name_prefix
    ends = [one.expires_at for one in _due_first(Due.EXPIRE, prefix) if one.expires_at is not None]
    ends += [one.deletion_requested_at or now for one in _due_first(Due.CLEAN, prefix)]
    return waiting.expected(standing=standing, ends=ends, grace_seconds=current().grace_seconds, now=now)


def _due_first(due: Due, prefix: str) -> Iterator[Sandbox]:
    found = every(lambda cursor: pages.due(due, until=None, cursor=cursor, limit=_MOST_ENDS))
    return (one for one in itertools.islice(found, _MOST_ENDS) if isinstance(one, Sandbox) and one.name.startswith(prefix))


def is_waited_for(*, name: str, track: str, now: datetime) -> bool:
    """Whether somebody other than ``track`` waits in the line whom a sandbox of this name would fit."""

    def would_take_it(place: Place) -> bool:
        wanted = wanted_at(place)
        return name.startswith(wanted.name_prefix) and wanted.track != track

    return waiting.first_that_fits(line=SANDBOXES, fits=would_take_it, now=now)[1] is not None


def may_revive(*, key: str, track: str, now: datetime) -> Decision:
    """Whether ``track`` may have again the sandbox that it gave back, for which ``key`` stood."""
    record = key_items.get_key(key)
    return policy.may_revive(None if record is None else rows.get(record.sandbox_id), record, track, now)


def unreadable() -> tuple[Unreadable, ...]:
    """The rows that nobody can work with because another program has written what makes no sense, of those known at the last
    count (at most 200); each is looked at again now.
    """
    counted = stats()
    return tuple(one for one in counted.unreadable if isinstance(rows.look(one.sandbox_id), Unreadable)) if counted is not None else ()


def counts_between(*, since: datetime, until: datetime) -> tuple[Stats, ...]:
    """The counts that were made from ``since`` to ``until``, oldest first: about one in five minutes, kept for eight days."""
    if until < since:
        return ()
    counts = every(lambda cursor: pool.page_counts(since=since, until=until, cursor=cursor, limit=_MANY_COUNTS))
    return tuple(stats for stats in counts if since <= stats.counted_at <= until)


def get_run(*, run_id: str) -> Run:
    """Read a run that was ordered strongly."""
    run = runs.get_run(run_id)
    if run is None:
        raise NoSuchRun
    return run


def open_runs(*, cursor: str | None = None, limit: int = 50) -> Page[Run]:
    """Runs that wait or are under way, earliest due first."""
    return runs.page_runs(RunDue.PERFORM, until=None, cursor=cursor, limit=limit)


def ended_runs(*, cursor: str | None = None, limit: int = 50) -> Page[Run]:
    """Runs that have ended, the last one first."""
    return runs.page_runs(RunDue.FORGET, until=None, cursor=cursor, limit=limit, newest_first=True)


def history(*, sandbox_id: str) -> tuple[AuditEvent, ...]:
    """Every event about a sandbox, oldest first: all its holders."""
    return audit.chain_of(entity_of(sandbox_id))


def recent_history(*, sandbox_id: str) -> tuple[AuditEvent, ...]:
    """The newest events about a sandbox, newest first."""
    return audit.history(entity_of(sandbox_id), limit=_RECENT).items


def pool_head() -> tuple[str, int, str]:
    """Entity, version and hash of the chain of the pool itself (version 0: nothing has been told on it)."""
    return POOL_ENTITY, *pool.pool_head()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What :func:`verify` found; ``sandboxes`` counts those that were looked at, gone ones too."""

    sandboxes: int
    problems: tuple[Problem, ...]


def verify(
    *, receipts: Sequence[Receipt], slack_seconds: float, provider: Provider | None = None, progress: Callable[[], object] = lambda: None
) -> Verdict:
    """Check every hand-over of every sandbox that ever was, by its events, its row, the clients' receipts, and whether the provider has
    reset it since. Reads the whole audit log once: for checks, not for pages."""
    sandbox_ids = dict.fromkeys(_every_id())
    problems: list[Problem] = []
    histories = {}
    for sandbox_id in sandbox_ids:
        events, found = _checked(sandbox_id)
        histories[sandbox_id] = events
        problems += found
        progress()
    problems += ledger.problems_of_receipts(receipts, histories, slack_seconds=slack_seconds)
    problems += list_behind(provider=provider) if provider is not None else ()
    return Verdict(len(sandbox_ids), tuple(problems))


def list_behind(*, provider: Provider) -> tuple[Problem, ...]:
    """Sandboxes that the provider has reset since the last hand-over that our tables know: restored tables, or other hands. Each is
    looked at twice, on both sides. A provider that can't be read is a problem too."""
    try:
        listed = effects.read_list(provider)
        rows = (row for row in pages.every_row() if isinstance(row, Sandbox) and row.external_id in listed)
        suspects = [row for row in rows if policy.is_reset_since(row, listed[row.external_id].generation)]
        behind = [row for row in suspects if _is_still_behind(row, provider.get_sandbox(row.external_id))]
    except (Unavailable, UpstreamError) as error:
        return (Problem("unread", "", f"the provider could not be asked which sandboxes it has reset: {error}"),)
    return tuple(_behind_problem(row) for row in behind)


def _is_still_behind(row: Sandbox, found: UpstreamSandbox | None) -> bool:
    fresh = rows.look(row.sandbox_id)
    return found is not None and isinstance(fresh, Sandbox) and policy.is_reset_since(fresh, found.generation)


def _behind_problem(row: Sandbox) -> Problem:
    holder = f"lent to {row.track} (fence {row.fence})" if row.status is Status.ALLOCATED else f"free after fence {row.fence}"
    return Problem("behind", row.sandbox_id, f"{holder}, but the provider has reset it since: a later hand-over is in no table")


def _every_id() -> Iterator[str]:
    prefix = entity_of("")
    yield from (one.sandbox_id for one in pages.every_row())
    yield from (entity.removeprefix(prefix) for entity in audit.every_entity() if entity.startswith(prefix))


def _checked(sandbox_id: str) -> tuple[tuple[AuditEvent, ...], list[Problem]]:
    """One that changed between the reads is read anew: only what stands still can be judged."""
    for _ in range(_MOST_READS):
        row, events = rows.look(sandbox_id), history(sandbox_id=sandbox_id)
        is_listed = free_list.is_listed(sandbox_id)
        if rows.look(sandbox_id) == row:
            break
    problems = list(ledger.problems_of_events(events, row))
    if isinstance(row, Sandbox) and row.status is Status.AVAILABLE and not is_listed and not policy.is_unlisted(row):
        problems.append(Problem("orphan", sandbox_id, "free, but not in the free list"))
    return events, problems


def explain(*, sandbox_id: str, now: datetime) -> str:
    """Why the sandbox is as it is, and what comes next, in words."""
    sandbox = get(sandbox_id=sandbox_id)
    match sandbox.status:
        case Status.AVAILABLE:
            words = "It is free: the next take may get it."
        case Status.ALLOCATED:
            words = _lent_words(sandbox, now)
        case Status.PENDING_DELETION:
            words = _cleaning_words(sandbox)
        case Status.STALE:
            words = "The provider's list lacked it at two looks." if sandbox.missing_since else "The provider shows it as not ready."
            words += " It comes back by itself when it is listed as ready again; restoring cleans it first."
        case Status.QUARANTINED:
            words = f"It is kept out of use: {sandbox.quarantine_reason.rstrip('. ')}. Restoring it has it cleaned once more."
    if sandbox.missing_since is not None:
        words += f" The provider's list has not had it since {_shown(sandbox.missing_since)}."
    if policy.mending_of(sandbox) is not policy.Mending.NOTHING:
        words += " Another program wrote its present state; the next sync takes note of it."
    return words


def _lent_words(sandbox: Sandbox, now: datetime) -> str:
    end, grace = sandbox.expires_at, sandbox.grace_ends_at
    if end is None or grace is None:
        return f"It is lent to {sandbox.track}."
    if now < end:
        return f"It is lent to {sandbox.track} until {_shown(end)} (hand-over {sandbox.fence})."
    if now < grace:
        return f"The time of {sandbox.track} was over at {_shown(end)}; it may still be given back until {_shown(grace)}."
    return f"The time of {sandbox.track} was over at {_shown(end)}; the next expire_sandboxes takes it back."


def _cleaning_words(sandbox: Sandbox) -> str:
    if sandbox.clean_error:
        due = f", again at {_shown(sandbox.due_at)}" if sandbox.due_at else ""
        return (
            f"It is to be cleaned; {sandbox.deletion_retry_count} of {policy.MOST_FAILURES} tries have failed{due}: {sandbox.clean_error}"
        )
    if sandbox.delete_sent_at is not None:
        return f"Its deletion was sent at {_shown(sandbox.delete_sent_at)}; the provider does not show it ready yet."
    return "It was given back, and is cleaned by the next clean_sandboxes."


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"
