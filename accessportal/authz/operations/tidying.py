"""What goes away by itself or all at once: records that are over, and whole scopes. Each record by a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.authz import store
from accessportal.authz.models import SHARDS
from accessportal.authz.operations.granting import CONTENDED
from accessportal.authz.policy.ends import check_policy, is_over
from accessportal.authz.policy.rights import Caller
from accessportal.authz.states import Approval, Relationship, Scope, ScopeDeleting, ScopeFacts, ScopeState, TtlPolicy
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.kernel.pages import every
from accessportal.store.transactions import until_written

LEDGERS: tuple[Ledger[Any], ...] = (APPROVALS, RELATIONSHIPS)
_PAGE = 100


def set_policy(*, scope: Scope, policy: TtlPolicy | None, caller: Caller, now: datetime) -> ScopeFacts:
    """Let ``policy`` count for the scope and what lies below it; ``None``: that of the scope above. What was granted stays.

    :raises UnauthorizedScopeAccess: unless the caller reaches the scope.
    :raises InvalidRequest: for a policy that contradicts itself.
    :raises ScopeDeleting: while the scope is being deleted.
    """
    caller.require(scope, writes=True)
    wanted = None if policy is None else check_policy(policy)

    def attempt() -> ScopeFacts:
        before = store.get_scope(scope) or ScopeFacts(scope)
        if before.state is ScopeState.DELETING:
            raise ScopeDeleting(scope)
        data = {"policy": policy_data(wanted), "old_policy": policy_data(before.policy)}
        after = replace(before, policy=wanted, state=ScopeState.OPEN)
        return store.keep_scope(before, after, "policy_set", data=data, actor=caller.actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def begin_deletion(*, scope: Scope, typed: str, caller: Caller, now: datetime) -> ScopeFacts:
    """Let nothing new come into the scope, and what is in it be removed by :func:`carry_out_deletions`. Again: nothing changes.

    Scopes below it stay. ``typed``: its name, typed by whoever asks.

    :raises InvalidRequest: unless ``typed`` is the scope's name.
    :raises Conflict: for a scope in which nothing ever was, and the global one.
    """
    caller.require(scope, writes=True)
    if typed != scope:
        raise InvalidRequest(f"Type the name of the scope, {scope}, to delete what is in it.", code="scope_not_typed", field="typed")

    def attempt() -> ScopeFacts:
        before = store.get_scope(scope)
        if before is None:
            raise Conflict(f"Nothing was ever granted in {scope}.", code="scope_unknown")
        if before.state is ScopeState.DELETING:
            return before
        after = replace(before, state=ScopeState.DELETING, deleting_since=now, removed=0)
        return store.keep_scope(before, after, "deletion_begun", data={}, actor=caller.actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def carry_out_deletion(facts: ScopeFacts, *, actor: Actor, clock: Clock, until: datetime) -> ScopeFacts:
    """Remove what is in a scope that is being deleted, as far as time goes; when none is left, its receipt is written.

    May die anywhere, and run twice at once: what is removed is removed, and the next run goes on.
    """
    removed = facts.removed
    for ledger in LEDGERS:
        for record in _within(ledger, facts.scope):
            if clock.now() >= until:
                store.note_removed(facts, removed)
                return replace(facts, removed=removed)
            removed += _removed(ledger, record, "deleted", lambda _: True, actor=actor, now=clock.now())
    left = sum(1 for ledger in LEDGERS for _ in _within(ledger, facts.scope))
    if left:
        store.note_removed(facts, removed)
        return replace(facts, removed=removed)
    data = {"removed": removed, "proved_by": "ScopeIndex of Approvals and Relationships, all shards: none"}
    after = replace(facts, state=ScopeState.DELETED, removed=removed)
    return store.keep_scope(facts, after, "deleted", data=data, actor=actor, now=clock.now())


def sweep(*, actor: Actor, clock: Clock, until: datetime) -> int:
    """Remove what is over, with an event for each; how many. It was over for everybody before."""
    removed = 0
    for ledger in LEDGERS:
        for shard in range(SHARDS):
            for record in list(every(partial(_ended_page, ledger, shard, clock.now()))):
                if clock.now() >= until:
                    return removed
                removed += _removed(ledger, record, "expired", partial(_is_over, clock), actor=actor, now=clock.now())
    return removed


def _removed(ledger: Ledger[Any], listed: Any, verb: str, still: Callable[[Any], bool], *, actor: Actor, now: datetime) -> bool:
    """Whether this call removed it: an index may lag, so it is read again first."""

    def attempt() -> bool:
        found = ledger.get(listed.scope, listed.names)
        if found is None or not still(found):
            return False
        ledger.remove(found, verb, data={}, actor=actor, now=now)
        return True

    return until_written(attempt, contended=CONTENDED)


def _ended_page(ledger: Ledger[Any], shard: int, now: datetime, cursor: str | None) -> Any:
    return ledger.page_ending(shard, until=now, cursor=cursor, limit=_PAGE)


def _is_over(clock: Clock, record: Approval | Relationship) -> bool:
    return is_over(record.expires_at, clock.now())


def _within(ledger: Ledger[Any], scope: Scope) -> Iterator[Approval | Relationship]:
    for shard in range(SHARDS):
        yield from every(partial(_shard_page, ledger, scope, shard))


def _shard_page(ledger: Ledger[Any], scope: Scope, shard: int, cursor: str | None) -> Any:
    return ledger.page_of_shard(scope, shard, is_wide=False, cursor=cursor, limit=_PAGE)


def policy_data(policy: TtlPolicy | None) -> dict[str, object] | None:
    """A policy in an event."""
    return None if policy is None else {name: getattr(policy, name) for name in TtlPolicy.__slots__}
