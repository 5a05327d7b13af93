"""Bringing the records of one scope into another: each leaves and arrives in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from accessportal.authz import store
from accessportal.authz.config import current
from accessportal.authz.operations.granting import open_scope, read_open_scope
from accessportal.authz.operations.repeating import CONTENDED
from accessportal.authz.policy.ends import is_over
from accessportal.authz.policy.rights import Caller, check_phase
from accessportal.authz.states import DIRECT, SHARDS, MoveReport, Scope, ScopeState
from accessportal.authz.store import LEDGERS, Ledger
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.kernel.pages import every
from accessportal.kernel.runs import Run
from accessportal.store.transactions import ConditionFailed, Overtaken, until_written

_PAGE = 100


@dataclass
class Move(Run):
    """Records on their way. What can't go is told, and stays."""

    passes = ()
    to: Scope
    apply: bool
    caller: Caller
    clock: Clock
    moved: list[str] = field(default_factory=list)

    def move(self, ledger: Ledger[Any], listed: Any) -> None:
        if until_written(partial(self._attempt, ledger, listed), contended=CONTENDED):
            self.moved.append(listed.entity)

    def _attempt(self, ledger: Ledger[Any], listed: Any) -> bool:
        now = self.clock.now()
        found = ledger.get(listed.scope, listed.names)
        if found is None or is_over(found.expires_at, now):
            return False
        if any(holder != DIRECT for holder in found.held_until):
            raise Conflict("A request holds it, and ends it where it is.", code="held_by_request")
        there = ledger.get(self.to, found.names)
        if there is not None and not is_over(there.expires_at, now):
            raise Conflict(f"{self.to} has one of these names already.", code="exists")
        if self.apply:
            try:
                if there is not None:
                    ledger.remove(there, "expired", data={}, actor=self.caller.actor, now=now)
                ledger.move(found, self.to, actor=self.caller.actor, now=now)
            except store.ScopeClosed as error:
                _, own = read_open_scope(self.to)
                open_scope(self.to, own, actor=self.caller.actor, now=now)
                raise Overtaken from error
            except ConditionFailed as error:
                raise Overtaken from error
        return True


def move_records(*, source: Scope, to: Scope, apply: bool, caller: Caller, clock: Clock) -> MoveReport:
    """Let what counts in ``source`` count in ``to`` instead, until the same end. May die anywhere, and be done again; without ``apply``
    it is only said what would go.

    :raises NotAllowed: unless the caller is an operator for good.
    :raises InvalidRequest: when both are the same, and into the global scope where grants there are refused.
    :raises ScopeDeleting: while ``to`` is being deleted.
    """
    caller.require(source, writes=True)
    caller.require(to, writes=True)
    caller.require_operator()
    if source == to:
        raise InvalidRequest("Both scopes are the same.", code="same_scope", field="to")
    check_phase(to, current().global_scope)
    _, own = read_open_scope(to)
    if apply and (own is None or own.state is not ScopeState.OPEN):
        until_written(lambda: open_scope(to, store.get_scope(to), actor=caller.actor, now=clock.now()), contended=CONTENDED)
    run = Move(to=to, apply=apply, caller=caller, clock=clock)
    for ledger in LEDGERS:
        for shard in range(SHARDS):
            fetch = partial(ledger.page_of_shard, source, shard, is_wide=False, limit=_PAGE)
            for record in every(lambda cursor, fetch=fetch: fetch(cursor=cursor), past=run.pass_over):  # type: ignore[misc]
                run.unit(record.entity, partial(run.move, ledger, record))
    return MoveReport(moved=len(run.moved), is_applied=apply, failures=run.failed)
