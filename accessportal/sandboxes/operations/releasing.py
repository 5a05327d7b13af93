"""Ending an allocation: by its owner, by its deadline, by an operator. The sandbox is cleaned before anybody else gets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock, to_epoch, whole_second
from accessportal.kernel.errors import Conflict, NotAllowed
from accessportal.kernel.pages import as_far, every
from accessportal.kernel.runs import Run
from accessportal.sandboxes import policy, queries
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.others import load_mended, mended
from accessportal.sandboxes.operations.shared import (
    check_fence,
    ended,
    released_by,
    told,
    unreadable_failure,
    until_written,
)
from accessportal.sandboxes.policy import Mending
from accessportal.sandboxes.states import Due, ExpireReport, NoSuchSandbox, Released, Sandbox, Status, Unreadable
from accessportal.sandboxes.store import pages, rows
from accessportal.store.reading import ReadAhead

EXPIRE = system("expire_sandboxes")
_PAGE = 100


def release(
    *, sandbox_id: str, track: str, fence: int | None = None, ahead: ReadAhead | None = None, actor: Actor, now: datetime
) -> Released:
    """Give back the sandbox of ``track``: the key of the allocation is closed. Repeated, it answers as the first time, as long as the
    newest fifty events tell of it. With ``fence`` no newer allocation to the same track is ended; without it the latest is meant."""
    policy.check_programs_track(track)
    return until_written(partial(_release, sandbox_id, track, fence, ahead, actor, now))


def _release(sandbox_id: str, track: str, fence: int | None, ahead: ReadAhead | None, actor: Actor, now: datetime) -> Released:
    found = rows.get(sandbox_id, ahead=ahead)
    if found is None:
        earlier = _ended_earlier(sandbox_id, track, fence)
        if earlier is None:
            raise NoSuchSandbox
        return earlier
    sandbox = mended(found, actor=actor, now=now)
    is_present = sandbox.status is Status.ALLOCATED and sandbox.track == track and fence in {None, sandbox.fence}
    if not is_present and sandbox.last_released_by == track and fence in {None, sandbox.last_released_fence}:
        assert sandbox.last_released_at is not None
        return Released(sandbox_id, track, sandbox.last_released_fence, sandbox.last_released_at)
    # The row knows its last release alone; with other holders since then, the events are asked.
    if not is_present and (fence is not None or sandbox.track != track):
        earlier = _ended_earlier(sandbox_id, track, fence)
        if earlier is not None:
            return earlier
    if sandbox.status is Status.PENDING_DELETION and sandbox.track == track:
        raise _expired()
    if fence not in {None, sandbox.fence}:
        raise NotAllowed("This sandbox has been lent anew since then.", code="NOT_SANDBOX_OWNER")
    policy.may_release(sandbox, track, now).require()
    return end(sandbox, draft_data={}, actor=actor, now=now)


def end(sandbox: Sandbox, *, draft_data: dict[str, str], undo_seconds: int = 0, actor: Actor, now: datetime) -> Released:
    """Give back the allocation, as it was read, for its owner; it is cleaned after ``undo_seconds``, as far as it had so much time left."""
    clean_at = max(now, min(now + timedelta(seconds=undo_seconds), sandbox.expires_at or now))
    after = released_by(ended(sandbox, clean_at=clean_at, now=now), sandbox.track, now=now)
    draft = told("sandbox.released", after, track=sandbox.track, status=after.status.value, **draft_data)
    written = rows.change(sandbox, after, draft=draft, actor=actor, now=now)
    assert written.last_released_at is not None
    return Released(sandbox.sandbox_id, sandbox.track, written.fence, written.last_released_at)


def _ended_earlier(sandbox_id: str, track: str, fence: int | None) -> Released | None:
    """Find the release in the sandbox's newest events, which outlive its row; ``None`` when it was taken away. Without ``fence`` the latest
    hand-over to the track is meant; ``ALLOCATION_EXPIRED`` when its time was over first."""
    for event in queries.recent_history(sandbox_id=sandbox_id):
        if event.data.get("track") != track or fence not in {None, event.data["fence"]}:
            continue
        fence = event.data["fence"]
        if event.action == "sandbox.expired":
            raise _expired()
        if event.action == "sandbox.released":
            return Released(sandbox_id, track, event.data["fence"], whole_second(event.at))
    return None


def _expired() -> NotAllowed:
    return NotAllowed("The time of this allocation is over: the sandbox has been taken back.", code="ALLOCATION_EXPIRED")


def release_by_operator(*, sandbox_id: str, reason: str, fence: int | None = None, actor: Actor, now: datetime) -> Released:
    """End an allocation for its owner, who is told the same as after an own release. With ``fence`` nobody loses the sandbox who got it
    since the operator looked (``sandbox_moved_on``)."""
    policy.may_operate(actor).require()
    policy.check_reason(reason)

    def attempt() -> Released:
        sandbox = load_mended(sandbox_id, actor=actor, now=now)
        if sandbox.status is not Status.ALLOCATED:
            raise Conflict(f"This sandbox is not lent: it is {sandbox.status}.", code="not_allocated", present=sandbox)
        check_fence(sandbox, fence)
        return end(sandbox, draft_data={"reason": reason}, actor=actor, now=now)

    return until_written(attempt)


def expire_loaded(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    """End the allocation, as it was read, because its time is over."""
    after = ended(sandbox, clean_at=now, now=now)
    expired_at = 0 if sandbox.expires_at is None else to_epoch(sandbox.expires_at)
    draft = told("sandbox.expired", after, track=sandbox.track, expires_at=expired_at, status=after.status.value)
    return rows.change(sandbox, after, draft=draft, actor=actor, now=now)


def expire(*, clock: Clock, actor: Actor = EXPIRE) -> ExpireReport:
    """End every allocation past its deadline and grace: costs what is due, and one query for what other programs left."""
    run = _ExpireRun(clock, actor)
    missed = partial(run.fail, "the list of what is over")
    now = clock.now()
    for one in as_far(every(lambda cursor: pages.due(Due.EXPIRE, until=now, cursor=cursor, limit=_PAGE)), told=missed):
        run.look_at(one)
    # Allocated by other programs and never met since: they have no due time, but they have an age. Ours were met above.
    longest = timedelta(hours=current().longest_hours, seconds=current().grace_seconds)
    others = every(lambda cursor: pages.by_status(Status.ALLOCATED, allocated_until=now - longest, cursor=cursor, limit=_PAGE))
    for one in as_far(others, told=missed):
        if isinstance(one, Unreadable) or policy.mending_of(one) is not Mending.NOTHING:
            run.look_at(one)
    return ExpireReport(tuple(run.expired), tuple(run.mended), failures=run.failed)


@dataclass
class _ExpireRun(Run):
    clock: Clock
    actor: Actor
    expired: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)

    def look_at(self, seen: Sandbox | Unreadable) -> None:
        if isinstance(seen, Unreadable):
            self.failures.append(unreadable_failure(seen))
        else:
            self.unit(seen.sandbox_id, partial(until_written, partial(self._one, seen.sandbox_id)))

    def _one(self, sandbox_id: str) -> None:
        found = rows.get(sandbox_id)
        if found is None:
            return
        sandbox = mended(found, actor=self.actor, now=self.clock.now())
        if sandbox is not found:
            self.mended.append(sandbox_id)
        if sandbox.is_over(self.clock.now()):
            expire_loaded(sandbox, actor=self.actor, now=self.clock.now())
            self.expired.append(sandbox_id)
