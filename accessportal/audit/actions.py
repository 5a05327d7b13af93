"""The registry of audit actions: the only names an event may carry, and the data each may hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """``title`` is the headline on a timeline; ``fields`` is the allow-list of ``data`` keys: nothing else is stored."""

    title: str
    fields: frozenset[str]


def _spec(title: str, *fields: str) -> ActionSpec:
    return ActionSpec(title=title, fields=frozenset(fields))


ACTIONS: dict[str, ActionSpec] = {
    # access_requests
    "request.submitted": _spec(
        "Asked", "kind", "target", "duration_seconds", "reason", "ticket_id", "rule_name", "rule_hash", "expires_at", "extends"
    ),
    "request.auto_approved": _spec(
        "Asked and approved by rule",
        "kind",
        "target",
        "duration_seconds",
        "reason",
        "ticket_id",
        "rule_name",
        "rule_hash",
        "expires_at",
        "extends",
    ),
    "request.approval_given": _spec("Approval given", "reason", "approvals", "quorum", "fallback"),
    "request.approved": _spec("Approved", "reason", "approvals", "quorum", "fallback", "status", "expires_at"),
    "request.denied": _spec("Denied", "reason", "status"),
    "request.cancelled": _spec("Cancelled", "status"),
    "request.lapsed": _spec("Lapsed undecided", "status", "deadline"),
    "request.granted": _spec("Granted", "receipt"),
    "request.end_asked": _spec("Ended early", "reason", "expires_at"),
    "request.expired": _spec("Time is up", "expires_at"),
    "request.revoked": _spec("Revoked", "receipt", "status"),
    "request.work_delayed": _spec("Waiting", "work", "error_code", "error", "attempts", "work_due_at"),
    "request.retry_asked": _spec("Retry asked", "work"),
    # assignments
    "assignment.claimed": _spec("Claimed", "claim", "claims"),
    "assignment.released": _spec("Claim released", "claim", "claims"),
    "assignment.creating": _spec("Creation started", "state", "fence"),
    "assignment.deleting": _spec("Deletion started", "state", "fence"),
    "assignment.job_started": _spec("Job accepted", "job_id", "fence"),
    "assignment.job_forgotten": _spec("Job unknown to AWS", "job_id", "fence"),
    "assignment.present": _spec("Proved present", "state", "fence", "job_id", "job_status"),
    "assignment.absent": _spec("Proved absent", "state", "fence", "job_id", "job_status"),
    "assignment.adopted": _spec("Found and adopted", "state", "fence", "claims", "drift"),
    # rules
    "rule.added": _spec("Rule added", "version", "hash"),
    "rule.changed": _spec("Rule changed", "version", "hash", "old_hash"),
    "rule.removed": _spec("Rule removed", "version", "old_hash"),
    "rules.applied": _spec("Rules put in force", "version", "order", "added", "changed", "removed"),
    # directory
    "person.created": _spec("Person created", "email", "name", "state"),
    "person.enabled": _spec("Person enabled", "state"),
    "person.disabled": _spec("Person disabled", "state"),
    "group.created": _spec("Group created", "group_id", "parent_id", "name"),
    "group.deleted": _spec("Group deleted", "group_id", "name"),
    "membership.granted": _spec("Membership granted", "email", "group_id", "role"),
    "membership.revoked": _spec("Membership revoked", "email", "group_id", "role"),
}
