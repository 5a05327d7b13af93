"""What is asked for: an action on a resource within a scope."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kinds.approval.terms import ApprovalAsked, ApprovalTerms
from accessportal.access_requests.kinds.records import RecordTarget
from accessportal.authz.queries import APPROVALS
from accessportal.authz.states import Approval, Scope


class ApprovalTarget(RecordTarget[Approval]):
    """Given as ``{"scope": like tenant:acme-corp, "resource": name, "action": name}``."""

    parts = ("scope", "resource", "action")
    ledger = APPROVALS
    terms = ApprovalTerms

    def record(self, target: Mapping[str, Any], *, subject_id: str, by: str, at: datetime, metadata: Mapping[str, str]) -> Approval:
        return Approval(Scope(target["scope"]), subject_id, target["resource"], target["action"], by, at, metadata=metadata)

    def asked_for(self, stored: Mapping[str, str]) -> ApprovalAsked:
        return ApprovalAsked(stored["scope"], stored["resource"], stored["action"])
