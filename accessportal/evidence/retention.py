"""Removing what is old from the audit log: whole chains of requests that are over and forgotten, once evidence has all of them
(docs/decisions/0088-how-long-events-stay.md).

Nothing is kept of how far it is: each run looks at a part of the log as it is. What was removed is told apart from what somebody has
deleted by the signed files alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.access_requests import queries as requests
from accessportal.audit import operations as audit_operations
from accessportal.audit import queries as audit
from accessportal.audit.states import RETENTION, AuditEvent
from accessportal.evidence import policy
from accessportal.evidence.config import LEAST_KEEP_DAYS
from accessportal.evidence.heads import SignedHeads, read_signed_heads
from accessportal.evidence.states import RemovalReport
from accessportal.evidence.store import EvidenceFiles
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE, brake, check_share
from accessportal.kernel.clock import Clock, from_epoch
from accessportal.kernel.errors import NotFound
from accessportal.kernel.runs import Run, each

SEGMENTS = 7
"""Parts of the log: the job looks at one a day, so at all in a week."""
_ACTOR = system("remove_old_events")
# Of one chain, what a transaction can delete, and spend its name.
_MOST_EVENTS = 99


def segment_of(now: datetime) -> int:
    """The part whose turn it is today."""
    return now.toordinal() % SEGMENTS


def removed_before(now: datetime) -> datetime | None:
    """Up to when the audit log may lack what was over, by its own orders; ``None``: nothing was ordered, or the orders are broken."""
    orders = audit.chain_of(RETENTION)
    if not orders or audit.breaks_in(orders):
        return None
    told = max(int(order.data.get("before_at", 0)) for order in orders)
    return min(from_epoch(told), policy.cutoff(now, keep_days=LEAST_KEEP_DAYS))


def remove_old(
    *,
    files: EvidenceFiles,
    public_keys: Sequence[bytes],
    keep_days: int,
    segments: Iterable[int] = range(SEGMENTS),
    most_share: float = MOST_SHARE,
    until: datetime | None = None,
    keeps_unpublished: bool = False,
    is_dry: bool = False,
    actor: Actor,
    clock: Clock,
) -> RemovalReport:
    """Remove what was over ``keep_days`` ago from these parts of the log, as far as files with a digest by one of ``public_keys`` have all
    of it. More than ``most_share`` of a part stops the run; no part and no chain is begun after ``until``.

    :raises NotAllowed: unless the actor is an operator or the portal.
    :raises Unavailable: when the log or the store of evidence does not answer.
    """
    audit_operations.require_removing_right(actor)
    check_share(most_share)
    cutoff = policy.cutoff(clock.now(), keep_days=keep_days)
    signed = read_signed_heads(files, public_keys=public_keys)
    run = _Removing(clock=clock, until=until, cutoff=cutoff, keeps_unpublished=keeps_unpublished)
    if audit.breaks_in(audit.chain_of(RETENTION)):
        return run.report("The chain of earlier orders is broken, so verify_audit would call a forgery what goes. See verify_audit.")
    for segment in segments:
        known, due = _due(segment, cutoff)
        words = f"chains of requests would go that were over before {cutoff:%Y-%m-%d}"
        remedy = "Look at PORTAL_AUDIT_KEEP_DAYS and at the clock of this machine"
        stopped = brake(len(due), known, most_share, would=words, remedy=remedy)
        if not stopped and run.is_over:
            stopped = "The time of the run was over when it knew what was due: nothing of that went."
        if stopped:
            return run.report(stopped)
        proved = _in_evidence(due, signed)
        run.unproved += len(due) - len(proved)
        if proved and not is_dry:
            audit_operations.order_removal(before=cutoff, keep_days=keep_days, actor=actor, now=clock.now())
        each(proved, lambda chain: run.unit(chain.entity, lambda: run.remove(chain, is_dry=is_dry)), workers=8, name="retention")
    return run.report()


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain that is due, with the hash of each event by its sequence."""

    entity: str
    hashes: tuple[str, ...]


def _due(segment: int, cutoff: datetime) -> tuple[int, list[_Chain]]:
    """How many chains of requests a part of the log has, and those that were over before ``cutoff``."""
    known, due = 0, list[_Chain]()
    for entity, events in audit.every_chain(segment=segment, segments=SEGMENTS):
        if policy.is_of_request(entity):
            known += 1
            is_over = any(policy.tells_of_end(event.action) for event in events)
            if is_over and events[-1].at < cutoff and len(events) <= _MOST_EVENTS:
                due.append(_Chain(entity, tuple(event.hash for event in events)))
    return known, due


def _in_evidence(due: Sequence[_Chain], signed: SignedHeads) -> list[_Chain]:
    """Those of which every event stands as it is in a file whose digest is signed."""
    lacking = {chain.entity: set(enumerate(chain.hashes, start=1)) for chain in due}
    for told in signed.whole_lines_about(lacking):
        lacking[told["entity"]].discard((told["sequence"], told["hash"]))
    return [chain for chain in due if not lacking[chain.entity]]


@dataclass(kw_only=True)
class _Removing(Run):
    clock: Clock
    until: datetime | None
    cutoff: datetime
    keeps_unpublished: bool
    unproved: int = 0
    removed: list[int] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.until is not None and self.clock.now() >= self.until

    def remove(self, chain: _Chain, *, is_dry: bool) -> None:
        """The chain is gone, if it is as it was proved, and its request is gone."""
        events = audit.chain_of(chain.entity)
        if self.is_over or not self._may_go(chain, events):
            self.left.append(chain.entity)
        elif is_dry or audit_operations.remove_chain(events):
            self.removed.append(len(events))

    def _may_go(self, chain: _Chain, events: Sequence[AuditEvent]) -> bool:
        if tuple(event.hash for event in events) != chain.hashes or audit.breaks_in(events):
            return False
        if self.keeps_unpublished and not all(event.is_published for event in events):
            return False
        try:
            requests.get(request_id=chain.entity.partition("#")[2], actor=_ACTOR, now=self.clock.now())
        except NotFound:
            return True
        return False

    def report(self, stopped: str = "") -> RemovalReport:
        return RemovalReport(
            removed=len(self.removed),
            events=sum(self.removed),
            unproved=self.unproved,
            left=len(self.left),
            failures=self.failed,
            stopped=stopped,
        )
