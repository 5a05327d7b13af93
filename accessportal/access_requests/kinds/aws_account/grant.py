"""Granting: a claim on the assignment at IAM Identity Center."""

from __future__ import annotations

from collections.abc import Sequence

from accessportal.access_requests.kind import Grant
from accessportal.access_requests.states import AccessRequest
from accessportal.assignments import operations as assignments
from accessportal.assignments.states import AssignmentKey
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Guard


class AccountGrant(Grant):
    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return assignments.hold(
            key=_key(request), claim=request.request_id, guards=guards, subject=request.subject_id, actor=actor, clock=clock
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        return assignments.release(key=_key(request), claim=request.request_id, subject=request.subject_id, actor=actor, clock=clock)


def _key(request: AccessRequest) -> AssignmentKey:
    return AssignmentKey(
        principal_type=PrincipalType(request.target["principal_type"]),
        principal_id=request.target["principal_id"],
        account_id=request.target["account_id"],
        permission_set_arn=request.target["permission_set_arn"],
    )
