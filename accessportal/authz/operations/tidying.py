"""What goes away by itself or all at once: records that are over, and whole scopes. Each record by a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from accessportal.authz import store
from accessportal.authz.operations.repeating import CONTENDED
from accessportal.authz.policy.ends import is_over
from accessportal.authz.states import SHARDS, Approval, DeletionReport, Relationship, ScopeFacts, ScopeState, SweepReport
from accessportal.authz.store import LEDGERS, Ledger
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Page, every
from accessportal.kernel.runs import Run, each
from accessportal.store.transactions import ConditionFailed, Overtaken, until_written

SWEEP_SECONDS = 600.0
DELETION_SECONDS = 50.0
WORKERS = 4
# An index may lag: what was granted right before a scope was shut is in it by then.
SETTLED = timedelta(minutes=1)
_PAGE = 100
_SHARES = [(ledger, shard) for ledger in LEDGERS for shard in range(SHARDS)]


@dataclass
class Tidying(Run):
    """Records under removal, each by itself. Nothing new is begun after ``until``; ``removed`` are their names in the audit log."""

    actor: Actor
    clock: Clock
    until: datetime
    removed: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.clock.now() >= self.until

    def listed(self, fetch: Callable[[str | None], Page[Any]]) -> Iterator[Any]:
        """The records of one share; one that can't be read is a failure."""
        for record in every(fetch, past=self.pass_over):
            if self.is_over:
                return
            yield record

    def remove(self, ledger: Ledger[Any], listed: Any, removed: Callable[[Any], bool]) -> None:
        """Remove the record if it is still there, which is read again first: an index may lag."""

        def attempt() -> bool:
            found = ledger.get(listed.scope, listed.names)
            return found is not None and removed(found)

        def action() -> None:
            if until_written(attempt, contended=CONTENDED):
                self.removed.append(listed.entity)

        self.unit(listed.entity, action)


def sweep(*, actor: Actor, clock: Clock, limit_seconds: float = SWEEP_SECONDS, workers: int = WORKERS) -> SweepReport:
    """Remove what is over, with an event for each. It was over for everybody before. Nothing new is begun after ``limit_seconds``."""
    run = Tidying(actor=actor, clock=clock, until=clock.now() + timedelta(seconds=limit_seconds))
    each(_SHARES, lambda share: run.unit(_name(*share), partial(_sweep_share, run, *share)), workers=workers, name="sweep-authz")
    return SweepReport(removed=len(run.removed), is_partial=run.is_over, failures=run.failed)


def _sweep_share(run: Tidying, ledger: Ledger[Any], shard: int) -> None:
    until = run.clock.now()

    def removed(record: Approval | Relationship) -> bool:
        if not is_over(record.expires_at, run.clock.now()):
            return False
        ledger.remove(record, "expired", data={}, actor=run.actor, now=run.clock.now())
        return True

    for record in run.listed(lambda cursor: ledger.page_ending(shard, until=until, cursor=cursor, limit=_PAGE)):
        run.remove(ledger, record, removed)


def carry_out_deletions(*, actor: Actor, clock: Clock, limit_seconds: float = DELETION_SECONDS, workers: int = WORKERS) -> DeletionReport:
    """Go on with every scope that is being deleted, the oldest order first. May die anywhere and run beside itself: what is removed is
    removed, and the next run goes on."""
    run = Tidying(actor=actor, clock=clock, until=clock.now() + timedelta(seconds=limit_seconds))
    deleted: list[str] = []

    def go_on(facts: ScopeFacts) -> None:
        if _is_emptied(run, facts, workers):
            _write_receipt(run, facts)
            deleted.append(facts.scope)

    deleting = list(every(lambda cursor: store.page_of_deleting(cursor=cursor, limit=_PAGE), past=run.pass_over))
    for facts in deleting:
        run.unit(facts.entity, partial(go_on, facts))
    return DeletionReport(removed=len(run.removed), deleted=tuple(deleted), under_way=len(deleting) - len(deleted), failures=run.failed)


def _is_emptied(run: Tidying, facts: ScopeFacts, workers: int) -> bool:
    """Remove what is in the scope as far as time goes; whether none is left. Not when another run has ended its deletion meanwhile."""
    while not run.is_over and store.get_scope(facts.scope) == facts:
        begun_at, failures = run.clock.now(), len(run.failures)
        found = _remove_listed(run, facts, workers)
        if run.is_over or len(run.failures) > failures:
            return False
        if not found:
            # Only a look that began when the indexes had surely settled proves that none is left.
            return facts.deleting_since is None or not is_recent(facts.deleting_since, now=begun_at, within=SETTLED)
    return False


def _remove_listed(run: Tidying, facts: ScopeFacts, workers: int) -> bool:
    """Remove what the indexes list of the scope; whether there was anything."""
    found: list[str] = []

    def share_of(share: tuple[Ledger[Any], int]) -> None:
        run.unit(_name(*share), partial(_delete_share, run, facts, found, *share))

    each(_SHARES, share_of, workers=workers, name="delete-scope")
    return bool(found)


def _delete_share(run: Tidying, facts: ScopeFacts, found: list[str], ledger: Ledger[Any], shard: int) -> None:
    def removed(record: Approval | Relationship) -> bool:
        try:
            ledger.remove_with_scope(record, actor=run.actor, now=run.clock.now())
        except ConditionFailed as error:
            raise Conflict(f"{facts.scope} is not being deleted any more.", code="scope_deleted") from error
        return True

    for record in run.listed(lambda cursor: ledger.page_of_shard(facts.scope, shard, is_wide=False, cursor=cursor, limit=_PAGE)):
        found.append(record.entity)
        run.remove(ledger, record, removed)


def _write_receipt(run: Tidying, facts: ScopeFacts) -> None:
    records = store.count_removed(facts.scope)
    data = {"records": records, "proved_by": f"ScopeIndex of Approvals and Relationships, {SHARDS} shares each: none"}
    after = replace(facts, state=ScopeState.DELETED, policy=None, removed=records)
    try:
        store.keep_scope(facts, after, "deleted", data=data, actor=run.actor, now=run.clock.now())
    except Overtaken as error:
        raise Conflict(f"Another run wrote the receipt of {facts.scope}.", code="scope_deleted") from error


def _name(ledger: Ledger[Any], shard: int) -> str:
    return f"{ledger.word}s, share {shard}"
