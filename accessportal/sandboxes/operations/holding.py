"""Sandboxes for the workflow: a claim holds one of a person's, or waits for one in the line, and gives it back. The last claim that
goes, releases.

The key is that of the first request; a request that extends it is a second claim on the same key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, to_epoch, whole_second
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import policy, queries
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.handing import is_of, serve_line, standing_holds
from accessportal.sandboxes.operations.probing import probe
from accessportal.sandboxes.operations.releasing import end, expire_loaded
from accessportal.sandboxes.operations.shared import held_anew, told, until_written
from accessportal.sandboxes.operations.taking import Asked, lend_any
from accessportal.sandboxes.states import Due, KeyRecord, NoneFree, Sandbox, Status
from accessportal.sandboxes.store import free_list, keys, rows
from accessportal.store.transactions import ConditionFailed, Guard, Step
from accessportal.upstream.provider import Provider
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.states import SANDBOXES

# So often a waiting claim looks whether it has been served, should nobody have told it.
_LOOK_AGAIN = timedelta(minutes=1)
_LATER = timedelta(minutes=5)


def hold(
    *,
    claim: str,
    key: str,
    track: str,
    name_prefix: str,
    ends_at: datetime,
    duration_seconds: int | None = None,
    most_held: int,
    is_first: bool = True,
    provider: Provider | None = None,
    guards: Sequence[Guard],
    actor: Actor,
    clock: Clock,
) -> Proof | Waiting:
    """Hold the sandbox of ``key`` for ``claim``: a free one, or the first that its turn in the line brings, for the first claim, for
    ``duration_seconds`` from the hand-over (its place lapses at ``ends_at``); a longer end for others, at ``ends_at``. No longer than the
    lab. Nothing is written unless ``guards`` hold (``guard_failed``). Docs: decisions 25 and 77."""
    wanted = _Wanted(
        claim=claim,
        ends_at=ends_at,
        duration_seconds=duration_seconds,
        key=policy.check_text(key, field="key"),
        track=policy.check_text(track, field="track"),
        name_prefix=policy.check_text(name_prefix, field="name_prefix") if name_prefix else "",
        most_held=most_held,
        is_first=is_first,
        provider=provider,
        guards=guards,
        actor=actor,
    )
    return until_written(lambda: _hold(wanted, clock))


def let_go(*, claim: str, key: str, track: str, undo_seconds: int = 0, actor: Actor, clock: Clock) -> Proof | Waiting:
    """End the claim, and its place in the line: with other claims the sandbox stays until the latest of them, else it is released, to be
    cleaned after ``undo_seconds``. Repeating it is harmless, and so is an allocation that has ended otherwise."""
    return until_written(lambda: _let_go(claim, key, track, undo_seconds, actor, clock))


def revive(
    *,
    claim: str,
    key: str,
    former_key: str,
    track: str,
    ends_at: datetime,
    most_held: int,
    guards: Sequence[Guard],
    actor: Actor,
    clock: Clock,
) -> Proof | Waiting:
    """Undo that ``track`` gave back the sandbox of ``former_key``: the same hand-over goes on under ``key``, for ``claim`` until
    ``ends_at``. Final, where its cleaning has begun, or somebody else has it, or ``track`` has ``most_held`` others by now."""

    def attempt() -> Proof | Waiting:
        now = clock.now()
        seen, former = keys.look_up(key, holder=track), keys.get_key(former_key)
        standing = _standing(seen.record, track)
        if standing is not None and claim in standing.claims:
            return _proof(standing, now)
        sandbox = None if former is None else rows.get(former.sandbox_id)
        decision = policy.may_revive(sandbox, former, track, now)
        if sandbox is None or seen.record is not None or not decision.allowed:
            return Waiting(decision.code, decision.reason, now, is_error=True, is_final=True)
        holds = standing_holds(seen.holder, now)
        if len(holds) >= most_held:
            return Waiting("too_many_held", _too_many(len(holds)), now, is_error=True, is_final=True)
        lent = dataclasses.replace(held_anew(sandbox, track), status=Status.ALLOCATED, key=key, due=Due.EXPIRE, deletion_requested_at=None)
        lent = _with_claims(lent, {claim: ends_at})
        assert lent.expires_at is not None
        data = {"track": track, "key": lent.sent_key, "expires_at": to_epoch(lent.expires_at), "status": lent.status.value}
        try:
            written = rows.change(
                sandbox,
                lent,
                draft=told("sandbox.revived", lent, **data),
                actor=actor,
                now=now,
                key_step=keys.open_key(None, key=key, request_hash="", sandbox=lent),
                further=[*guards, keys.hold_for(seen.holder, {**holds, key: sandbox.sandbox_id})],
            )
        except rows.FurtherFailed as failed:
            raise (_not_wanted() if any(failed.step is guard for guard in guards) else rows.KeyOvertaken()) from failed
        return _proof(written, now, called_at=now)

    return until_written(attempt)


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    claim: str
    ends_at: datetime
    duration_seconds: int | None
    key: str
    track: str
    name_prefix: str
    most_held: int
    is_first: bool
    provider: Provider | None
    guards: Sequence[Guard]
    actor: Actor

    def seconds(self, now: datetime) -> int:
        """For how long it is wanted from a hand-over on, as asked ``now``."""
        return int((self.ends_at - now).total_seconds()) if self.duration_seconds is None else self.duration_seconds

    def end(self, now: datetime) -> datetime:
        """When the claim ends that is written ``now``."""
        return self.ends_at if self.duration_seconds is None else whole_second(now) + timedelta(seconds=self.duration_seconds)


def _hold(wanted: _Wanted, clock: Clock) -> Proof | Waiting:
    now = clock.now()
    if now >= wanted.ends_at:
        return Waiting("time_over", "Its time was over before it had a sandbox.", now + _LOOK_AGAIN, is_error=False, is_queued=True)
    seen = keys.look_up(wanted.key, holder=wanted.track, place=line.item_of_place(line=SANDBOXES, claim=wanted.claim))
    sandbox = _standing(seen.record, wanted.track)
    if sandbox is not None and not sandbox.is_over(now):
        return _join(sandbox, wanted, now)
    if seen.waits:
        return _in_line(now + _LOOK_AGAIN)
    if seen.record is not None or not wanted.is_first:
        words = "The sandbox was given back, or taken away, before this was done. End this request; another sandbox can be asked for."
        return Waiting("allocation_over", words, now + _LATER, is_error=True)
    holds = standing_holds(seen.holder, now)
    if len(holds) >= wanted.most_held:
        return Waiting("too_many_held", _too_many(len(holds)), now + _LATER, is_error=True)
    return _take(wanted, seen, holds, clock)


def _take(wanted: _Wanted, seen: keys.Seen, holds: Mapping[str, str], clock: Clock) -> Proof | Waiting:
    now = clock.now()
    nobody_waits = line.nobody_waits(SANDBOXES)

    def further(lent: Sandbox) -> list[Step]:
        return [*wanted.guards, nobody_waits, keys.hold_for(seen.holder, {**holds, wanted.key: lent.sandbox_id})]

    asked = Asked(
        key=wanted.key,
        track=wanted.track,
        name_prefix=wanted.name_prefix,
        duration_seconds=None,
        actor=wanted.actor,
        now=now,
        claims={wanted.claim: wanted.end(now)},
        further=further,
        check=partial(probe, wanted.provider, actor=wanted.actor, now=now),
    )
    try:
        return _held(lend_any(asked, seen), wanted, now, called_at=now)
    except NoneFree as none:
        return _wait(wanted, none, clock)
    except rows.FurtherFailed as failed:
        if failed.step is nobody_waits:
            return _wait(wanted, None, clock)
        raise _after(failed, wanted) from failed
    except Unavailable as error:
        if error.code != "pool_contended":
            raise
        return Waiting(error.code, error.message, now + timedelta(seconds=2), is_error=False, is_queued=True)


def _wait(wanted: _Wanted, none: NoneFree | None, clock: Clock) -> Proof | Waiting:
    """Stand in the line. What became free before it was joined, or what others waited for (without ``none``), goes to the first at once."""
    now, is_unserved = clock.now(), keys.is_unused(wanted.key)
    try:
        waiting.join(
            line=SANDBOXES,
            claim=wanted.claim,
            wants={"key": wanted.key, "track": wanted.track, "name_prefix": wanted.name_prefix, "most_held": wanted.most_held},
            duration_seconds=wanted.seconds(now),
            lapses_at=wanted.ends_at,
            guards=[*wanted.guards, is_unserved],
            actor=wanted.actor,
            now=now,
        )
    except ConditionFailed as failed:
        # Another worker with the same request may have been faster.
        raise (rows.KeyOvertaken() if failed.step is is_unserved else _not_wanted()) from failed
    if none is None or free_list.returns() != none.returns:
        serve_line(provider=wanted.provider, clock=clock)
        sandbox = _standing(keys.get_key(wanted.key), wanted.track)
        if sandbox is not None:
            return _held(sandbox, wanted, now, called_at=now)
    expected_at = None if none is None else none.next_return_at
    soonest, latest = now + timedelta(seconds=1), now + _LOOK_AGAIN
    return _in_line(latest if expected_at is None else min(max(expected_at, soonest), latest), expected_at)


def _in_line(retry_at: datetime, expected_at: datetime | None = None) -> Waiting:
    expected = "" if expected_at is None else f" The next is expected at {expected_at:%H:%M} UTC."
    words = f"No sandbox is free at the moment.{expected} It waits in the line, and gets one when its turn comes."
    return Waiting("no_sandbox_free", words, retry_at, is_error=False, is_queued=True)


def _join(sandbox: Sandbox, wanted: _Wanted, now: datetime) -> Proof:
    """The claim is one of those for whom the sandbox stands."""
    present = sandbox.claims.get(wanted.claim)
    if present is not None and (wanted.duration_seconds is not None or present == wanted.ends_at):
        return _held(sandbox, wanted, now)
    after = _with_claims(sandbox, {**sandbox.claims, wanted.claim: wanted.end(now)})
    try:
        return _held(_move_end(sandbox, after, "sandbox.prolonged", wanted.guards, wanted.actor, now), wanted, now, called_at=now)
    except rows.FurtherFailed as failed:
        raise _after(failed, wanted) from failed


def _after(failed: rows.FurtherFailed, wanted: _Wanted) -> Exception:
    """What a failed step means: the caller no longer wants it, or another hand-over to the same person came between."""
    if any(failed.step is guard for guard in wanted.guards):
        return _not_wanted()
    return rows.KeyOvertaken()


def _not_wanted() -> Conflict:
    return Conflict("It is no longer wanted: the request changed meanwhile.", code="guard_failed")


def _let_go(claim: str, key: str, track: str, undo_seconds: int, actor: Actor, clock: Clock) -> Proof:
    now = clock.now()
    record, waits = keys.get_with_place(key, line.item_of_place(line=SANDBOXES, claim=claim))
    if waits:
        waiting.leave(line=SANDBOXES, claim=claim, actor=actor, now=now)
    holds: Mapping[str, str] = {}
    if record is None:
        # Read after its place was gone: it may have been served in between.
        seen = keys.look_up(key, holder=track)
        record, holds = seen.record, seen.holder.holds
    sandbox = _held_as(key, track, holds.get(key, "")) if record is None else _standing(record, track)
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
    end(sandbox, draft_data={}, undo_seconds=undo_seconds, actor=actor, now=now)
    return _gone(sandbox.sandbox_id, sandbox.fence, now, called_at=now)


def _held_as(key: str, track: str, sandbox_id: str) -> Sandbox | None:
    """The sandbox, while ``track`` has it for its claims by a key that somebody has deleted."""
    sandbox = rows.get(sandbox_id) if sandbox_id else None
    is_its = sandbox is not None and sandbox.status is Status.ALLOCATED and sandbox.key == key and is_of(sandbox, track)
    return sandbox if is_its else None


def _standing(record: KeyRecord | None, track: str) -> Sandbox | None:
    """The sandbox that the key stands for, while ``track`` has it for its claims."""
    sandbox = queries.standing(record)
    return sandbox if sandbox is not None and is_of(sandbox, track) else None


def _with_claims(sandbox: Sandbox, claims: Mapping[str, datetime]) -> Sandbox:
    assert sandbox.allocated_at is not None, "it is lent"
    expires_at = policy.end_of(sandbox.allocated_at, sandbox.lab_duration_hours, claims)
    grace_ends_at = expires_at + timedelta(seconds=current().grace_seconds)
    return dataclasses.replace(sandbox, claims=claims, expires_at=expires_at, grace_ends_at=grace_ends_at, due_at=grace_ends_at)


def _move_end(before: Sandbox, after: Sandbox, action: str, guards: Sequence[Guard], actor: Actor, now: datetime) -> Sandbox:
    assert after.expires_at is not None
    draft = told(action, after, track=after.track, expires_at=to_epoch(after.expires_at), status=after.status.value)
    return rows.change(before, after, draft=draft, actor=actor, now=now, further=guards)


def _held(sandbox: Sandbox, wanted: _Wanted, now: datetime, *, called_at: datetime | None = None) -> Proof:
    """With its end, where that was told by the hand-over."""
    assert sandbox.allocated_at is not None, "it is lent"
    proof = _proof(sandbox, now, called_at=called_at)
    if wanted.duration_seconds is None:
        return proof
    own = {wanted.claim: sandbox.claims[wanted.claim]}
    return dataclasses.replace(proof, ends_at=policy.end_of(sandbox.allocated_at, sandbox.lab_duration_hours, own))


def _proof(sandbox: Sandbox, now: datetime, *, called_at: datetime | None = None) -> Proof:
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


def _too_many(held: int) -> str:
    sandboxes = "One sandbox is" if held == 1 else f"{held} sandboxes are"
    return f"{sandboxes} held already, as many as one person may hold at once. Give one back."
