"""After the tables were restored to an earlier moment: what is done at once, what must be looked at, and the end of it.

Each step may be repeated, and says in the restore's own item that it is done: killed anywhere, the next run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from accessportal.access_requests import operations as requests
from accessportal.access_requests import queries as request_queries
from accessportal.access_requests.states import ReconcileReport
from accessportal.assignments import operations as assignments
from accessportal.audit import operations as audit
from accessportal.authz import queries as authz
from accessportal.catalog import queries as catalog
from accessportal.identity.operations import end_every_session
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.kernel.errors import Conflict, PortalError, Unavailable
from accessportal.kernel.pages import every
from accessportal.leases import operations as leases
from accessportal.mirror import operations as mirror
from accessportal.mirror.queries import is_mirrored
from accessportal.rules import queries as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.store.restores import Restore, held_restore
from accessportal.tokens import operations as tokens
from accessportal.upstream import client as upstream

PART = system("after_restore")
_PAGE = 100
# What was decided so shortly before the moment of the restore may have been carried out, or undone, after it.
_NEAR = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that somebody must look at. ``kind`` sorts them; ``words`` say what differs and what that may mean."""

    kind: str
    what: str
    words: str


@dataclass(frozen=True, slots=True)
class Context:
    """What the steps need to know. ``keep_tokens`` are ids of tokens that go on."""

    restore: Restore
    keep_tokens: Collection[str]
    actor: Actor
    clock: Clock


def _tokens(context: Context) -> Mapping[str, int]:
    restore = context.restore
    revoked = tokens.revoke_every_token(
        made_before=restore.lost_since,
        keep=context.keep_tokens,
        reason=f"The tables were restored to {restore.restored_to:%Y-%m-%d %H:%M:%SZ}; it may have been revoked since.",
        actor=context.actor,
        now=context.clock.now(),
    )
    return {"tokens": len(revoked)}


def _people(context: Context) -> Mapping[str, int]:
    found = mirror.disable_as_mirrored(actor=PART, clock=context.clock)
    if found.failures:
        # Not done: whoever is disabled in Cognito alone would be let in again by the confirmation.
        raise Conflict("; ".join(f"{one.item}: {one.error}" for one in found.failures), code="people_left")
    return {"people": len(found.people), "failed": 0}


def _fences(context: Context) -> Mapping[str, int]:
    assignments.raise_fences(to=context.restore.epoch, actor=PART, clock=context.clock)
    provider = upstream.provider() if upstream.is_set() else None
    settled = sandboxes.settle_restore(restored=context.restore, provider=provider, actor=context.actor, clock=context.clock)
    accounts = leases.settle_restore(restored=context.restore, actor=context.actor, clock=context.clock)
    counts = {"sandboxes": settled.raised, "quarantined": len(settled.quarantined), "brought_in": settled.added}
    return counts | {"accounts": len(accounts.raised), "failed": len(settled.failures) + len(accounts.failures)}


STEPS: Mapping[str, Callable[[Context], Mapping[str, int]]] = {
    "sessions": lambda _context: {"sessions": end_every_session()},
    "tokens": _tokens,
    "people": _people,
    "fences": _fences,
}


def run_steps(context: Context) -> tuple[Restore, dict[str, str]]:
    """Do what is not done yet, and tell the restore as it stands and what came of each step; one that fails hinders no other. Conflict when
    somebody else does the same now."""
    restore, told = context.restore, {}
    for name, step in STEPS.items():
        if name in restore.done:
            told[name] = "done before"
            continue
        try:
            counts = step(context)
        except PortalError as error:
            told[name] = f"failed: {error.message}"
            continue
        restore = audit.note_step(restore, step=name, counts=counts, actor=context.actor, now=context.clock.now())
        told[name] = ", ".join(f"{what} {count}" for what, count in counts.items())
    return restore, told


def confirm(*, actor: Actor, clock: Clock) -> tuple[Restore, Mapping[str, int]]:
    """Let grants go on; before that ends what may have ended in the lost time, and what was put aside in the pool is to be cleaned.
    Conflict when nothing is held, a step is not done, or something could not be ended; Unavailable when what is really there can't be
    read."""
    restore = held_restore()
    if restore is None:
        raise Conflict("No restore waits to be confirmed.", code="nothing_held")
    left = [name for name in STEPS if name not in restore.done]
    if left:
        text = f"Not done yet: {', '.join(left)}. Run after_restore --restored-to again first."
        raise Conflict(text, code="steps_left")
    # By its right before anything is ended.
    audit.require_restore_right(actor)
    report = compared(restore, clock)
    if report.unreadable:
        text = f"What can't be read can't be compared: {'; '.join(report.unreadable)} Nothing is confirmed; mend it, then run it again."
        raise Unavailable(text, code="not_compared")
    lost = requests.end_lost(restored=restore, compared=report, actor=actor, clock=clock)
    if lost.failures:
        failure = lost.failures[0]
        many = counted(len(lost.failures), "request", "requests")
        text = f"{many} could not be ended ({failure.item}: {failure.error}). Nothing is confirmed; run it again."
        raise Conflict(text, code="not_ended")
    counts = {"ended": len(lost.ended), "cleaned": sandboxes.clean_restored(restored=restore, actor=actor, clock=clock)}
    return audit.confirm_restore(restore, counts=counts, actor=actor, now=clock.now()), counts


def compared(restore: Restore, clock: Clock) -> ReconcileReport:
    """Compare Identity Center with the claims anew: a comparison that the tables were restored with has seen another world. Conflict when
    the catalog was never read: it would look as if nothing were there."""
    if catalog.freshness().synced_at is None:
        raise Conflict("The catalog is empty, so nothing can be compared. Run sync_catalog first.", code="catalog_empty")
    report = requests.reconcile_assignments(actor=PART, clock=clock)
    if report.comparison.begun_at < restore.lost_since:
        # One that was under way at that moment was gone on with; now it is over, and the next one begins.
        report = requests.reconcile_assignments(actor=PART, clock=clock)
    return report


class Look:
    """What must be looked at, and what could not be asked. Changes nothing."""

    def __init__(self, restore: Restore, clock: Clock) -> None:
        self._restore = restore
        self._clock = clock
        self.findings: list[Finding] = []
        self.unread: list[str] = []

    def before_the_steps(self) -> None:
        """At what they settle by themselves."""
        self._ask(partial(_differing_people, self._clock), _differing_sandboxes)

    def after_the_steps(self) -> None:
        """At what takes long to read, or is left to people."""
        self._ask(
            partial(_differing_assignments, self._restore, self._clock),
            partial(_requests_near, self._restore, self._clock),
            partial(_stand_ins, self._restore, self._clock),
            partial(_scopes_in_use, self._clock),
            _rules_in_force,
        )

    def _ask(self, *parts: Callable[[], list[Finding]]) -> None:
        for part in parts:
            try:
                self.findings += part()
            except PortalError as error:
                self.unread.append(error.message)


def _differing_assignments(restore: Restore, clock: Clock) -> list[Finding]:
    report = compared(restore, clock)
    words = {
        "unknown": (report.unknown, "is there, and no table tells why: perhaps granted after that moment. Adopt or remove it"),
        "left_over": (report.left_over, "is there, and nobody claims it: perhaps granted again after that moment. It can be removed"),
        "missing": (report.missing, "is claimed and not there: perhaps ended after that moment. Confirming ends the requests"),
    }
    found = [
        Finding(kind, f"{one.key.principal_id} in {one.key.account_id}, {one.key.permission_set_arn}", said)
        for kind, (findings, said) in words.items()
        for one in findings
    ]
    if report.not_ours:
        said = "of groups, or with permission sets that no rule gives: among them is what was granted to a group after that moment"
        found.append(Finding("not_ours", counted(len(report.not_ours), "assignment", "assignments"), said))
    found += [Finding("unread", f"{one.account_id} {one.permission_set_arn}", one.error) for one in report.unread]
    return found + [Finding("unread", "an item", words) for words in report.unreadable]


def _differing_people(clock: Clock) -> list[Finding]:
    if not is_mirrored():
        said = "no user pool follows the directory: compare who is enabled, and the members of groups, with your own records"
        return [Finding("people", "the directory", said)]
    comparison = mirror.compare_mirror(apply=False, actor=PART, clock=clock)
    return [Finding("people", one.entity, f"Cognito: {', '.join(one.differences)}") for one in comparison.differences]


def _differing_sandboxes() -> list[Finding]:
    if not upstream.is_set():
        return []
    return [Finding("sandbox", one.sandbox_id, one.words) for one in pool.list_behind(provider=upstream.provider())]


def _requests_near(restore: Restore, clock: Clock) -> list[Finding]:
    found = [
        Finding("request", one.request_id, f"of {one.subject_id}: not proved to be granted by that moment. Confirming ends it")
        for one in request_queries.list_unproved(before=restore.lost_since)
    ]
    now = clock.now()
    pending = every(lambda cursor: request_queries.list_pending(actor=PART, now=now, cursor=cursor, limit=_PAGE))
    found += [
        Finding("request", one.request_id, f"of {one.subject_id}: undecided again. Perhaps it was decided after that moment")
        for one in pending
        if one.requested_at < restore.lost_since
    ]
    active = every(lambda cursor: request_queries.list_active(actor=PART, now=now, cursor=cursor, limit=_PAGE))
    near = restore.restored_to - _NEAR
    found += [
        Finding("request", one.request_id, f"of {one.subject_id}: decided shortly before that moment, at {one.decided_at:%H:%M:%SZ}")
        for one in active
        if one.work is None and one.decided_at is not None and near <= one.decided_at < restore.lost_since
    ]
    return found


def _stand_ins(restore: Restore, clock: Clock) -> list[Finding]:
    now = clock.now()
    found = every(lambda cursor: request_queries.list_stand_ins(ends_after=now, actor=PART, cursor=cursor, limit=_PAGE))
    said = "perhaps that was taken back after that moment. Take it back then: end_stand_in"
    return [
        Finding("stand_in", f"{one.stand_in} {one.stand_in_id}", f"decides in place of {one.approver} until {one.ends_at:%Y-%m-%d}: {said}")
        for one in found
        if not one.state(now).is_for_good and one.named_at < restore.lost_since
    ]


def _scopes_in_use(clock: Clock) -> list[Finding]:
    caller, found = authz.caller_of(PART), []
    for facts in every(lambda cursor: authz.list_scopes(cursor=cursor, limit=_PAGE, caller=caller)):
        approvals = authz.count_in_scope(authz.APPROVALS, facts.scope, caller=caller, now=clock.now())
        relationships = authz.count_in_scope(authz.RELATIONSHIPS, facts.scope, caller=caller, now=clock.now())
        if approvals or relationships:
            said = f"has {approvals} approvals and {relationships} relationships that count"
            found.append(Finding("scope", facts.scope, f"{said}, also those that were revoked or deleted after that moment"))
    return found


def _rules_in_force() -> list[Finding]:
    head = rules.rule_set_head()
    number = 0 if head is None else head.version
    said = "are in force again. Load the file that was loaded last, if that was later: load_rules FILE --dry-run shows what differs"
    return [Finding("rules", f"rule set {number}", said)]
