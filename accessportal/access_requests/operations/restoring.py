"""What a restore of the tables leaves to do for requests: nothing is given again that somebody may have ended in the lost time."""

from __future__ import annotations

from collections.abc import Iterable

from accessportal.access_requests import store
from accessportal.access_requests.operations.departing import Look
from accessportal.access_requests.queries.lists import list_unproved
from accessportal.access_requests.states import AccessRequest, ReconcileReport, RestoreReport, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import OUTSIDE_CLAIM, AssignmentState
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import refuse
from accessportal.store.restores import Restore


def end_lost(*, restored: Restore, compared: ReconcileReport, actor: Actor, clock: Clock) -> RestoreReport:
    """End access of before the restore that is not there (``compared`` tells), can't be looked at, or was not proved to be there yet: in
    the lost time it may have been ended. May be repeated. Unavailable when what is to be looked at can't be listed."""
    look = Look(actor, clock)
    text = f"The tables were restored to {restored.restored_to:%Y-%m-%d %H:%M} UTC, and it may have been ended since. Ask again."
    why = refuse(text, code="restored")
    for request in {one.request_id: one for one in [*_of_missing(compared), *list_unproved(before=restored.lost_since)]}.values():
        if request.requested_at < restored.lost_since:
            look.end(request, why)
    return RestoreReport(ended=tuple(one.request_id for one in (*look.ended, *look.cancelled)), failures=look.failed)


def _of_missing(compared: ReconcileReport) -> Iterable[AccessRequest]:
    claims = {claim for finding in compared.missing for claim in finding.claims} | _claims_unread(compared)
    claims.discard(OUTSIDE_CLAIM)
    return (request for _, request in sorted(store.get_many(claims).items()) if request.status is Status.ACTIVE)


def _claims_unread(compared: ReconcileReport) -> set[str]:
    """What claims to be in a list that could not be had: nobody knows whether it is there."""
    unread = {(one.permission_set_arn, one.account_id) for one in compared.unread}
    found = set[str]()
    for state in (AssignmentState.PRESENT, AssignmentState.CREATING, AssignmentState.DELETING) if unread else ():
        for one in assignments.every_in(state=state):
            if unread & {(one.key.permission_set_arn, ""), (one.key.permission_set_arn, one.key.account_id)}:
                found |= one.claims
    return found
