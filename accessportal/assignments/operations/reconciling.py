"""Comparing our records with what IAM Identity Center really holds, and mending the difference when told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from accessportal.assignments import effects, store
from accessportal.assignments.states import (
    OUTSIDE_CLAIM,
    Assignment,
    AssignmentKey,
    AssignmentState,
    Comparison,
    Drift,
    Finding,
    Remedy,
    Unread,
)
from accessportal.audit.states import Draft
from accessportal.aws.errors import Gone, OutsideError, Refused, Transient
from accessportal.aws.identity_center import AssignmentTarget, IdentityCenter
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Page, every
from accessportal.kernel.proofs import Proof, Waiting

# What changed less than this ago is being driven by somebody.
_SETTLING = timedelta(minutes=5)
_GAPS_SECONDS = (1.0, 2.0, 4.0)
T = TypeVar("T")


def compare(*, permission_set_arns: Collection[str], clock: Clock) -> Comparison:
    """Read every assignment of these permission sets, in every account, and hold it against our records. Changes nothing.

    What is being created or deleted at the moment is no difference. Each difference is looked at twice: an assignment that
    was made or ended while the lists were read is none either. Lists that are refused, or of an account that is gone, are named;
    what they could hold is not compared.

    :raises Unavailable: when IAM Identity Center does not answer; half a list is never compared.
    """
    reading = _Reading(IdentityCenter(pace=effects.SharedPace(clock)), permission_set_arns, clock)
    try:
        reading.read()
        now = clock.now()
        found = [*_present_but_unclaimed(reading.listed, now), *_claimed_but_absent(reading, now)]
        confirmed = tuple(finding for finding in found if reading.confirms(finding, now))
    except OutsideError as error:
        raise Unavailable(f"IAM Identity Center could not be read: {error}", code="identity_center_unavailable") from error
    return Comparison(listed=len(reading.listed), findings=confirmed, unread=tuple(reading.unread))


class _Reading:
    """Every assignment of some permission sets, and the lists that could not be had. One list that is refused hinders no other."""

    def __init__(self, center: IdentityCenter, permission_set_arns: Collection[str], clock: Clock) -> None:
        self._center = center
        self._clock = clock
        self._permission_set_arns = permission_set_arns
        self.listed: set[AssignmentKey] = set()
        self.unread: list[Unread] = []

    def read(self) -> None:
        for arn in self._permission_set_arns:
            for account_id in self._accounts_of(arn):
                self._read_account(arn, account_id)

    def could_hold(self, key: AssignmentKey) -> bool:
        """Whether it would be in ``listed`` if it existed."""
        missed = {(one.permission_set_arn, one.account_id) for one in self.unread}
        arn = key.permission_set_arn
        return arn in self._permission_set_arns and not missed & {(arn, ""), (arn, key.account_id)}

    def confirms(self, finding: Finding, now: datetime) -> bool:
        try:
            return self._patiently(lambda: _is_still_so(self._center, finding, now))
        except Refused as error:
            self._miss(finding.key.permission_set_arn, finding.key.account_id, error)
            return False

    def _accounts_of(self, arn: str) -> list[str]:
        try:
            return self._patiently(lambda: list(self._center.list_accounts_of(permission_set_arn=arn)))
        except Gone:
            # The permission set was deleted, and with it every assignment of it.
            return []
        except Refused as error:
            self._miss(arn, "", error)
            return []

    def _read_account(self, arn: str, account_id: str) -> None:
        try:
            targets = self._patiently(lambda: list(self._center.list_assignments(account_id=account_id, permission_set_arn=arn)))
        except (Gone, Refused) as error:
            self._miss(arn, account_id, error)
        else:
            self.listed.update(map(_key_of, targets))

    def _patiently(self, read: Callable[[], T]) -> T:
        """Among thousands of calls some are always throttled or go without an answer; so often in a row it is an outage."""
        for gap in _GAPS_SECONDS:
            try:
                return read()
            except Transient:
                self._clock.sleep(gap)
        return read()

    def _miss(self, arn: str, account_id: str, error: OutsideError) -> None:
        self.unread.append(Unread(permission_set_arn=arn, account_id=account_id, error=str(error)))


def repair(*, finding: Finding, remedy: Remedy, actor: Actor, clock: Clock) -> Proof | Waiting | None:
    """Mend one difference with ``remedy``; ``None`` when the remedy is not for it.

    :raises Unavailable: when our store does not answer.
    """
    drift = finding.drift
    if remedy is Remedy.ADOPT and drift is Drift.UNKNOWN:
        return _record(finding, frozenset({OUTSIDE_CLAIM}), actor, clock)
    if remedy is Remedy.REMOVE_UNKNOWN and drift is Drift.UNKNOWN:
        return _record(finding, frozenset(), actor, clock)
    if remedy is Remedy.REPAIR and drift is Drift.LEFT_OVER:
        return _record(finding, frozenset(), actor, clock)
    if remedy is Remedy.REPAIR and drift is Drift.MISSING:
        return effects.converge(store.id_for(finding.key), subject=finding.key.principal_id, actor=actor, clock=clock)
    return None


def go_on(*, actor: Actor, clock: Clock) -> list[Waiting]:
    """Go on with what was begun and left: a repair that had to wait has no request whose work would come back to it. Returns what
    still waits.

    :raises Unavailable: when our store does not answer.
    """
    outcomes = []
    for state in (AssignmentState.CREATING, AssignmentState.DELETING):
        for assignment in every(partial(_by_state, state)):
            if not _is_settling(assignment, clock.now()):
                subject = assignment.key.principal_id
                outcomes.append(effects.converge(assignment.assignment_id, subject=subject, actor=actor, clock=clock))
    return [outcome for outcome in outcomes if isinstance(outcome, Waiting)]


def _record(finding: Finding, claims: frozenset[str], actor: Actor, clock: Clock) -> Proof | Waiting:
    """Write down that it is there, then drive it to what its claims want: none means that it goes."""
    assignment = store.find(finding.key)
    data = {"state": AssignmentState.PRESENT.value, "claims": sorted(claims), "drift": finding.drift.value}
    draft = Draft("assignment.adopted", finding.key.principal_id, data)
    now = clock.now()
    try:
        if assignment is None:
            store.insert(finding.key, claims=claims, state=AssignmentState.PRESENT, draft=draft, guards=(), actor=actor, now=now)
        elif assignment.state is AssignmentState.ABSENT:
            store.move(assignment, AssignmentState.PRESENT, draft=draft, actor=actor, now=now, seats=1)
    except store.Overtaken:
        # Somebody claimed it at this moment; the claims decide.
        pass
    return effects.converge(store.id_for(finding.key), subject=finding.key.principal_id, actor=actor, clock=clock)


def _present_but_unclaimed(listed: Collection[AssignmentKey], now: datetime) -> Iterator[Finding]:
    for key in sorted(listed, key=store.id_for):
        assignment = store.find(key)
        if assignment is None:
            yield Finding(Drift.UNKNOWN, key, claims=())
        elif _is_left_to_itself(assignment, now):
            yield Finding(Drift.LEFT_OVER, key, claims=())


def _claimed_but_absent(reading: _Reading, now: datetime) -> Iterator[Finding]:
    for state in (AssignmentState.PRESENT, AssignmentState.CREATING, AssignmentState.DELETING):
        for assignment in every(partial(_by_state, state)):
            key = assignment.key
            if reading.could_hold(key) and key not in reading.listed and _is_held(assignment, now):
                yield Finding(Drift.MISSING, key, claims=tuple(sorted(assignment.claims)))


def _by_state(state: AssignmentState, cursor: str | None) -> Page[Assignment]:
    return store.page_by_state(state, cursor=cursor, limit=100)


def _is_held(assignment: Assignment, now: datetime) -> bool:
    return assignment.is_wanted and (assignment.state is AssignmentState.PRESENT or not _is_settling(assignment, now))


def _is_left_to_itself(assignment: Assignment, now: datetime) -> bool:
    """Nobody claims it. What is recorded as present, or as being made or deleted, may have somebody at it for a while."""
    return not assignment.is_wanted and (assignment.state is AssignmentState.ABSENT or not _is_settling(assignment, now))


def _is_settling(assignment: Assignment, now: datetime) -> bool:
    return is_recent(assignment.changed_at, now=now, within=_SETTLING)


def _is_still_so(center: IdentityCenter, finding: Finding, now: datetime) -> bool:
    target = effects.target_of(finding.key)
    present = center.is_present(target)
    if present and finding.drift is not Drift.MISSING:
        # Of a user or group that was deleted it may stay listed for ever; it gives nobody access.
        present = center.has_principal(target)
    assignment = store.find(finding.key)
    match finding.drift:
        case Drift.MISSING:
            return not present and assignment is not None and _is_held(assignment, now)
        case Drift.UNKNOWN:
            return present and assignment is None
        case Drift.LEFT_OVER:
            return present and assignment is not None and _is_left_to_itself(assignment, now)


def _key_of(target: AssignmentTarget) -> AssignmentKey:
    return AssignmentKey(PrincipalType(target.principal_type), target.principal_id, target.account_id, target.permission_set_arn)
