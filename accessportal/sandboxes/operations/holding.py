"""Sandboxes for the workflow: a claim holds one of a person's, and gives it back. The last claim that goes, releases.

The key is that of the first request; a request that extends it is a second claim on the same key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import policy, queries
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.releasing import end, expire_loaded
from accessportal.sandboxes.operations.shared import told, until_written
from accessportal.sandboxes.operations.taking import Asked, lend_any
from accessportal.sandboxes.states import Holder, KeyRecord, NoneFree, Sandbox
from accessportal.sandboxes.store import keys, rows
from accessportal.store.transactions import Guard, Step

# A waiting claim is tried at least so often: the pool tells nobody when one came back.
_LOOK_AGAIN = timedelta(minutes=1)
_LATER = timedelta(minutes=5)


def hold(
    *,
    claim: str,
    key: str,
    track: str,
    name_prefix: str,
    ends_at: datetime,
    most_held: int,
    is_first: bool = True,
    guards: Sequence[Guard],
    actor: Actor,
    clock: Clock,
) -> Proof | Waiting:
    """Hold the sandbox of ``key`` for ``claim`` until ``ends_at``, or until the lab is over: a free one for the first claim, a longer end
    for others. Nothing is written unless ``guards`` hold (``guard_failed``). One key is lent one sandbox, once:
    docs/decisions/0025-a-sandbox-for-a-request.md."""
    wanted = _Wanted(
        claim=claim,
        ends_at=ends_at,
        key=policy.check_text(key, field="key"),
        track=policy.check_text(track, field="track"),
        name_prefix=policy.check_text(name_prefix, field="name_prefix") if name_prefix else "",
        most_held=most_held,
        is_first=is_first,
        guards=guards,
        actor=actor,
    )
    try:
        return until_written(lambda: _hold(wanted, clock))
    except NoneFree as none:
        now = clock.now()
        soonest, latest = now + timedelta(seconds=1), now + _LOOK_AGAIN
        retry_at = latest if none.next_return_at is None else min(max(none.next_return_at, soonest), latest)
        return Waiting("no_sandbox_free", _none_words(none), retry_at, is_error=False, is_queued=True)


def let_go(*, claim: str, key: str, track: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """End the claim: with other claims the sandbox stays until the latest of them, else it is released. Repeating it is harmless, and so is
    an allocation that has ended otherwise."""
    return until_written(lambda: _let_go(claim, key, track, actor, clock))


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    claim: str
    ends_at: datetime
    key: str
    track: str
    name_prefix: str
    most_held: int
    is_first: bool
    guards: Sequence[Guard]
    actor: Actor


def _hold(wanted: _Wanted, clock: Clock) -> Proof | Waiting:
    now = clock.now()
    if now >= wanted.ends_at:
        return Waiting("time_over", "Its time was over before it had a sandbox.", now + _LOOK_AGAIN, is_error=False, is_queued=True)
    seen = keys.look_up(wanted.key, holder=wanted.track)
    sandbox = _standing(seen.record, wanted.track)
    if sandbox is not None and not sandbox.is_over(now):
        return _join(sandbox, wanted, now)
    if seen.record is not None or not wanted.is_first:
        words = "The sandbox was given back, or taken away, before this was done. End this request; another sandbox can be asked for."
        return Waiting("allocation_over", words, now + _LATER, is_error=True)
    holds = _standing_holds(seen.holder, now)
    if len(holds) >= wanted.most_held:
        words = f"{_sandboxes(len(holds))} held already, as many as one person may hold at once. Give one back."
        return Waiting("too_many_held", words, now + _LATER, is_error=True)
    return _take(wanted, seen, holds, now)


def _take(wanted: _Wanted, seen: keys.Seen, holds: Mapping[str, str], now: datetime) -> Proof | Waiting:
    def further(lent: Sandbox) -> list[Step]:
        return [*wanted.guards, keys.hold_for(seen.holder, {**holds, wanted.key: lent.sandbox_id})]

    asked = Asked(
        key=wanted.key,
        track=wanted.track,
        name_prefix=wanted.name_prefix,
        duration_seconds=None,
        actor=wanted.actor,
        now=now,
        claims={wanted.claim: wanted.ends_at},
        further=further,
    )
    try:
        return _held(lend_any(asked, seen), now, called_at=now)
    except rows.FurtherFailed as failed:
        raise _after(failed, wanted) from failed
    except Unavailable as error:
        if error.code != "pool_contended":
            raise
        return Waiting(error.code, error.message, now + timedelta(seconds=2), is_error=False, is_queued=True)


def _join(sandbox: Sandbox, wanted: _Wanted, now: datetime) -> Proof:
    """The claim is one of those for whom the sandbox stands."""
    if sandbox.claims.get(wanted.claim) == wanted.ends_at:
        return _held(sandbox, now)
    after = _with_claims(sandbox, {**sandbox.claims, wanted.claim: wanted.ends_at})
    try:
        return _held(_move_end(sandbox, after, "sandbox.prolonged", wanted.guards, wanted.actor, now), now, called_at=now)
    except rows.FurtherFailed as failed:
        raise _after(failed, wanted) from failed


def _after(failed: rows.FurtherFailed, wanted: _Wanted) -> Exception:
    """What a failed step means: the caller no longer wants it, or another hand-over to the same person came between."""
    if any(failed.step is guard for guard in wanted.guards):
        return Conflict("It is no longer wanted: the request changed meanwhile.", code="guard_failed")
    return rows.KeyOvertaken()


def _let_go(claim: str, key: str, track: str, actor: Actor, clock: Clock) -> Proof:
    now = clock.now()
    record = keys.get_key(key)
    sandbox = _standing(record, track)
    if sandbox is None:
        return _gone(record.sandbox_id if record else "", record.fence if record else 0, now)
    if sandbox.is_over(now):
        expire_loaded(sandbox, actor=actor, now=now)
        return _gone(sandbox.sandbox_id, sandbox.fence, now, called_at=now)
    others = {name: ends_at for name, ends_at in sandbox.claims.items() if name != claim}
    if len(others) == len(sandbox.claims):
        return _gone(sandbox.sandbox_id, sandbox.fence, now, kept_by=others)
    if others:
        _move_end(sandbox, _with_claims(sandbox, others), "sandbox.shortened", (), actor, now)
        return _gone(sandbox.sandbox_id, sandbox.fence, now, called_at=now, kept_by=others)
    end(sandbox, draft_data={}, actor=actor, now=now)
    return _gone(sandbox.sandbox_id, sandbox.fence, now, called_at=now)


def _standing(record: KeyRecord | None, track: str) -> Sandbox | None:
    """The sandbox that the key stands for, while ``track`` has it for its claims."""
    sandbox = queries.standing(record)
    return sandbox if sandbox is not None and _is_of(sandbox, track) else None


def _is_of(sandbox: Sandbox, track: str) -> bool:
    return sandbox.track == track and bool(sandbox.claims)


def _standing_holds(holder: Holder, now: datetime) -> dict[str, str]:
    """What the holder still has: whatever ended an allocation, its key tells; past its grace it is over, noted or not."""
    found = queries.find_by_keys(keys=holder.holds)
    return {key: one.sandbox_id for key, one in found.items() if _is_of(one, holder.track) and not one.is_over(now)}


def _with_claims(sandbox: Sandbox, claims: Mapping[str, datetime]) -> Sandbox:
    assert sandbox.allocated_at is not None, "it is lent"
    expires_at = policy.end_of(sandbox.allocated_at, sandbox.lab_duration_hours, claims)
    grace_ends_at = expires_at + timedelta(seconds=current().grace_seconds)
    return dataclasses.replace(sandbox, claims=claims, expires_at=expires_at, grace_ends_at=grace_ends_at, due_at=grace_ends_at)


def _move_end(before: Sandbox, after: Sandbox, action: str, guards: Sequence[Guard], actor: Actor, now: datetime) -> Sandbox:
    assert after.expires_at is not None
    draft = told(action, after, track=after.track, expires_at=to_epoch(after.expires_at), status=after.status.value)
    return rows.change(before, after, draft=draft, actor=actor, now=now, further=guards)


def _held(sandbox: Sandbox, now: datetime, *, called_at: datetime | None = None) -> Proof:
    return Proof(is_present=True, job_id=sandbox.sandbox_id, job_status=f"fence {sandbox.fence}", called_at=called_at, proved_at=now)


def _gone(sandbox_id: str, fence: int, now: datetime, *, called_at: datetime | None = None, kept_by: Collection[str] = ()) -> Proof:
    return Proof(
        is_present=False,
        job_id=sandbox_id,
        job_status=f"fence {fence}" if fence else "",
        called_at=called_at,
        proved_at=now,
        kept_by=tuple(sorted(kept_by)),
    )


def _none_words(none: NoneFree) -> str:
    if none.next_return_at is None:
        return f"{none.message} It gets one as soon as one is free."
    return f"{none.message} The next is expected at {none.next_return_at:%H:%M} UTC. It gets one as soon as one is free."


def _sandboxes(number: int) -> str:
    return "One sandbox is" if number == 1 else f"{number} sandboxes are"
