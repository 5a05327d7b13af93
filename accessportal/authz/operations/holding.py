"""Records that a request holds: two requests for one record share it, and it goes when the last of them ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from accessportal.authz.config import current
from accessportal.authz.operations.granting import (
    held,
    insert_in_open_scope,
    read_open_scope,
    require_same_type,
    with_holders,
)
from accessportal.authz.operations.repeating import CONTENDED
from accessportal.authz.policy.ends import end_of, is_over
from accessportal.authz.policy.rights import check_phase
from accessportal.authz.states import Approval, Names, Relationship, Scope, ScopeFacts
from accessportal.authz.store import Ledger
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, epoch_of, to_epoch
from accessportal.kernel.errors import Conflict
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import ConditionFailed, Guard, until_written

R = TypeVar("R", Approval, Relationship)
_AGAIN = timedelta(seconds=60)


def check_holdable(ledger: Ledger[R], wanted: R, *, ends_at: datetime | None, now: datetime) -> None:
    """Whether ``wanted`` can be held from now until ``ends_at`` (``None``: not said yet).

    :raises Conflict: when it counts already for good, as a relation of another type, or its scope is being deleted.
    :raises InvalidRequest: for a length outside an enforced policy, naming the limit and whose policy it is, and in the global scope where
        grants there are refused.
    """
    present = _live(ledger.get(wanted.scope, wanted.names), now)
    _judge(present, wanted, ends_at)
    if present is not None and present.expires_at is None:
        raise Conflict(f"This {ledger.word} counts already, and without an end. Nothing needs to be asked for.", code="held_for_good")


def hold(
    ledger: Ledger[R], wanted: R, *, claim: str, ends_at: datetime, guards: Sequence[Guard], actor: Actor, clock: Clock
) -> Proof | Waiting:
    """Let ``wanted`` count until ``ends_at`` at least, for the request ``claim``, only while ``guards`` hold, and read it back; idempotent.

    :raises Conflict: when a guard does not hold (``guard_failed``), and as :func:`check_holdable`.
    :raises InvalidRequest: as :func:`check_holdable`.
    """
    now = clock.now()

    def attempt() -> bool:
        present = ledger.get(wanted.scope, wanted.names)
        if present is not None and present.held_until.get(claim) == to_epoch(ends_at):
            return False
        live = _live(present, now)
        own = _judge(live, wanted, ends_at)
        new = replace(wanted, ttl_seconds=_seconds(wanted, ends_at))
        if present is None:
            insert_in_open_scope(ledger, held(new, claim, ends_at), own, claim=claim, further=guards, actor=actor, now=now)
            return True
        begun = live or replace(new, version=present.version, audit_head=present.audit_head)
        after = held(begun, claim, ends_at)
        ledger.change(present, after, "held", data=_data(claim, after), further=guards, actor=actor, now=now)
        return True

    try:
        called_at = now if until_written(attempt, contended=CONTENDED) else None
    except ConditionFailed as error:
        raise Conflict("The request changed while the record was being written.", code="guard_failed") from error
    found, proved_at = ledger.get(wanted.scope, wanted.names), clock.now()
    if found is None or claim not in found.held_until:
        return Waiting("claim_lost", f"The {ledger.word} was taken away meanwhile.", proved_at + _AGAIN, is_error=True)
    others = _holders(found, besides=claim, now=proved_at)
    return Proof(is_present=True, job_id="", job_status="HELD", called_at=called_at, proved_at=proved_at, kept_by=others)


def let_go(ledger: Ledger[R], scope: Scope, names: Names, *, claim: str, actor: Actor, clock: Clock) -> Proof:
    """Let the request ``claim`` hold the record no longer; it goes when it counts for nobody else. Proved by a strong read."""
    now = clock.now()

    def attempt() -> bool:
        present = ledger.get(scope, names)
        if present is None or claim not in present.held_until:
            return False
        left = {holder: present.held_until[holder] for holder in _holders(present, besides=claim, now=now)}
        if left:
            after = with_holders(present, left)
            ledger.change(present, after, "released", data=_data(claim, after), actor=actor, now=now)
        else:
            ledger.remove(present, "revoked", data={"claim": claim}, actor=actor, now=now)
        return True

    called_at = now if until_written(attempt, contended=CONTENDED) else None
    found, proved_at = ledger.get(scope, names), clock.now()
    kept_by = _holders(found, besides=claim, now=proved_at) if found is not None else ()
    return Proof(bool(kept_by), "", "KEPT" if kept_by else "REVOKED", called_at, proved_at, kept_by)


def holders_of(ledger: Ledger[R], scope: Scope, names: Names, *, now: datetime) -> tuple[str, ...]:
    """The requests for which it counts now, and ``direct`` when somebody granted it without one: then it stays when requests end."""
    found = ledger.get(scope, names)
    return () if found is None else _holders(found, besides="", now=now)


def _live(record: R | None, now: datetime) -> R | None:
    return None if record is None or is_over(record.expires_at, now) else record


def _judge(present: R | None, wanted: R, ends_at: datetime | None) -> ScopeFacts | None:
    """What is known of the scope. At the grant the answer is that of the asking, however late that comes: the length counts from the
    beginning, as for what is granted without a request."""
    check_phase(wanted.scope, current().global_scope)
    governed, own = read_open_scope(wanted.scope)
    if present is not None:
        require_same_type(present, wanted)
    if ends_at is not None:
        started_at = wanted.began_at if present is None else present.began_at
        end_of(_seconds(wanted, ends_at), governed=governed, started_at=started_at, now=wanted.began_at)
    return own


def _seconds(wanted: Approval | Relationship, ends_at: datetime) -> int:
    return int((ends_at - wanted.began_at).total_seconds())


def _holders(record: Approval | Relationship, *, besides: str, now: datetime) -> tuple[str, ...]:
    """For whom it counts now, in order of their names."""
    others: Mapping[str, Any] = record.held_until
    return tuple(sorted(one for one, until in others.items() if one != besides and (until == 0 or until > to_epoch(now))))


def _data(claim: str, after: Approval | Relationship) -> dict[str, object]:
    return {"claim": claim, "expires_at": epoch_of(after.expires_at)}
