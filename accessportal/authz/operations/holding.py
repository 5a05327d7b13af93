"""Records that a request holds: two requests for one record share it, and it goes when the last of them ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from accessportal.authz import store
from accessportal.authz.operations.granting import CONTENDED, epoch_of, held, insert_in_open_scope, with_holders
from accessportal.authz.policy.ends import is_over
from accessportal.authz.states import Approval, Names, Relationship, Scope
from accessportal.authz.store import Ledger
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.store.transactions import Guard, until_written

R = TypeVar("R", Approval, Relationship)
_AGAIN_SECONDS = 60


def hold(ledger: Ledger[R], wanted: R, *, claim: str, ends_at: datetime, guards: Sequence[Guard], actor: Actor, clock: Clock) -> R:
    """Let ``wanted`` count until ``ends_at`` at least, for the request ``claim``, only while ``guards`` hold; idempotent.

    The end is the request's own, which its rule has judged.

    :raises ScopeDeleting: while its scope is being deleted.
    :raises Conflict: when a guard does not hold.
    """
    now = clock.now()

    def attempt() -> R:
        present = ledger.get(wanted.scope, wanted.names)
        if present is not None and present.held_until.get(claim) == to_epoch(ends_at):
            return present
        if present is None:
            own = store.get_scope(wanted.scope)
            made = held(wanted, claim, ends_at)
            return insert_in_open_scope(ledger, made, own, actor=actor, now=now, guards=guards)
        kept = {} if is_over(present.expires_at, now) else present.held_until
        after = held(replace(present, held_until=kept), claim, ends_at)
        return ledger.change(present, after, "held", data=_data(claim, after), guards=guards, actor=actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def let_go(ledger: Ledger[R], scope: Scope, names: Names, *, claim: str, actor: Actor, clock: Clock) -> R | None:
    """Let the request ``claim`` hold the record no longer; it goes when nobody else holds it. What is left of it, strongly read."""
    now = clock.now()

    def attempt() -> R | None:
        present = ledger.get(scope, names)
        if present is None or claim not in present.held_until:
            return present
        left = {holder: until for holder, until in present.held_until.items() if holder != claim}
        if not left:
            ledger.remove(present, "revoked", data={"claim": claim}, actor=actor, now=now)
            return ledger.get(scope, names)
        after = with_holders(present, left)
        return ledger.change(present, after, "released", data=_data(claim, after), actor=actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def _data(claim: str, after: Approval | Relationship) -> dict[str, object]:
    return {"claim": claim, "expires_at": epoch_of(after.expires_at)}
