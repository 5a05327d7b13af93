"""The registry of audit actions: the only names an event may carry, and the data each may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """``title`` is the headline on a timeline; ``fields`` is the allow-list of ``data`` keys: nothing else is stored. ``names``: those that
    hold a person's name, once and for ever, since hashes have its pseudonym; addresses are found by themselves."""

    title: str
    fields: frozenset[str]
    names: frozenset[str] = frozenset()


def _spec(title: str, *fields: str, names: Sequence[str] = ()) -> ActionSpec:
    return ActionSpec(title=title, fields=frozenset(fields) | frozenset(names), names=frozenset(names))


_ACCOUNT = ("fence", "state", "lease", "user", "reason")
_LEASE = ("account", "fence", "state", "claim", "ends_at", "reason")

# ``role`` is the role that the claim gives (or gave), ``effective_role`` the membership's highest after the change.
_MEMBERSHIP = ("email", "group_id", "role", "claim", "ends_at", "effective_role")

_ASKED = (
    *("kind", "target", "duration_seconds", "reason", "ticket_id", "rule_name", "rule_hash", "expires_at", "extends", "requested_by"),
    *("checks", "identities"),
)

_SCOPED = ("key", "old_expires_at", "expires_at", "claim")
_RELATED = (*_SCOPED, "relation_type")

ACTIONS: dict[str, ActionSpec] = {
    # access_requests
    "request.submitted": _spec("Asked", *_ASKED),
    "request.auto_approved": _spec("Asked and approved by rule", *_ASKED),
    "request.taken_back": _spec("Taken back after it was given back", *_ASKED),
    "request.approval_given": _spec("Approval given", "reason", "approvals", "quorum", "fallback", "in_place_of", "identities"),
    "request.approved": _spec(
        "Approved", "reason", "approvals", "quorum", "fallback", "in_place_of", "status", "expires_at", "checks", "identities"
    ),
    "request.denied": _spec("Denied", "reason", "in_place_of", "status", "purge_at"),
    "request.cancelled": _spec("Cancelled", "status", "reason", "purge_at"),
    "request.lapsed": _spec("Lapsed undecided", "status", "deadline", "purge_at"),
    "request.granted": _spec("Granted", "receipt", "expires_at", "account_id", "checks"),
    "request.end_asked": _spec("Ended early", "reason", "expires_at", "checks"),
    "request.expired": _spec("Time is up", "expires_at"),
    "request.revoked": _spec("Revoked", "receipt", "status", "purge_at", "checks"),
    # The text lies beside, in RequestComments: its hash tells whether it is still the same.
    "request.commented": _spec("Comment", "number", "comment_kind", "check", "addressee"),
    "request.work_delayed": _spec("Waiting", "work", "error_code", "error", "attempts", "work_due_at"),
    "request.budget_reached": _spec("Cost as much as its rule allows", "verdict", "cost"),
    "request.retry_asked": _spec("Retry asked", "work"),
    # who may decide in whose place; the actor who names is the approver
    "stand_in.named": _spec("Stand-in named", "starts_at", "ends_at", "note"),
    "stand_in.ended": _spec("Stand-in taken back", "approver", "reason"),
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
    "assignment.fence_raised": _spec("Counted on from a higher number after a restore", "fence"),
    # rules
    "rule.added": _spec("Rule added", "version", "hash"),
    "rule.changed": _spec("Rule changed", "version", "hash", "old_hash"),
    "rule.removed": _spec("Rule removed", "version", "old_hash"),
    "rules.applied": _spec("Rules put in force", "version", "order", "versions", "added", "changed", "removed"),
    # directory
    "user.created": _spec("Person created", "email", "state", names=["name"]),
    "user.enabled": _spec("Person enabled", "state"),
    "user.disabled": _spec("Person disabled", "state"),
    "user.renamed": _spec("Person renamed", names=["name", "old_name"]),
    "user.deleted": _spec("Person deleted", "email", "reason", names=["name"]),
    "user.granted": _spec("Membership granted", *_MEMBERSHIP),
    "user.revoked": _spec("Membership revoked", *_MEMBERSHIP, "reason"),
    "user.role_changed": _spec("Role changed", *_MEMBERSHIP, "old_role"),
    "user.signed_in": _spec("Signed in", "issuer", "method", "identity"),
    "user.signed_out": _spec("Signed out", "reason"),
    "user.identity_forgotten": _spec("Sign-in account forgotten", "issuer"),
    "sign_in.refused": _spec("Sign-in refused", "email", "reason", "issuer", "method"),
    "group.created": _spec("Group created", "group_id", "parent_id", "name", "description", "state"),
    "group.renamed": _spec("Group renamed", "group_id", "name", "old_name", "description", "old_description"),
    "group.moved": _spec("Group moved", "group_id", "old_parent_id", "parent_id", "groups_moved"),
    "group.enabled": _spec("Group enabled", "group_id", "state"),
    "group.disabled": _spec("Group disabled", "group_id", "state"),
    "group.deleted": _spec("Group deleted", "group_id", "parent_id", "name"),
    # sandboxes: each with the fence of the hand-over that it is about
    "sandbox.added": _spec("Added to the pool", "fence", "status", "name", "external_id"),
    "sandbox.taken": _spec("Lent", "fence", "status", "track", "key", "expires_at"),
    "sandbox.adopted": _spec("Allocation by another program noted", "fence", "status", "track", "key", "expires_at"),
    "sandbox.prolonged": _spec("Lent for longer", "fence", "status", "track", "expires_at"),
    "sandbox.shortened": _spec("One of those for whom it is lent let go", "fence", "status", "track", "expires_at"),
    "sandbox.released": _spec("Given back", "fence", "status", "track", "reason", "is_outside"),
    "sandbox.revived": _spec("Taken back by who gave it back", "fence", "status", "track", "key", "expires_at"),
    "sandbox.expired": _spec("Time is up", "fence", "status", "track", "expires_at"),
    "sandbox.cleaned": _spec("Cleaned, free again", "fence", "status"),
    "sandbox.clean_failed": _spec("Cleaning failed", "fence", "attempts", "error_code", "error"),
    "sandbox.removed": _spec("Left the pool", "fence", "external_id"),
    "sandbox.stale": _spec("Missing or not ready at the provider", "fence", "status", "missing_since"),
    "sandbox.seen_again": _spec("Listed by the provider again", "fence", "status"),
    "sandbox.quarantined": _spec("Put in quarantine", "fence", "status", "track", "reason"),
    "sandbox.restored": _spec("Restored, to be cleaned", "fence", "status"),
    "sandbox.fence_raised": _spec("Counted on from a higher number after a restore", "fence", "status", "track"),
    "sandbox.run_ordered": _spec("Run of the pool ordered", "run_kind", "run_id"),
    "sandbox.sync_stopped": _spec("Sync stopped", "reason", "listed", "known", "going_stale"),
    # the lines in which people wait for a thing of a pool; the subject is the request
    "line.joined": _spec("Joined the line", "place", "waiting"),
    "line.left": _spec("Left the line", "place", "waiting"),
    "line.served": _spec("Served", "place", "waiting", "thing"),
    # accounts that are lent: each with the fence of the hand-over that it is about
    "account.added": _spec("Added to the pool", *_ACCOUNT, "pool", "name"),
    "account.leased": _spec("Lent", *_ACCOUNT, "certificate"),
    "account.given_back": _spec("Given back", *_ACCOUNT),
    "account.taken_back": _spec("Taken back by its last holder", *_ACCOUNT),
    "account.cleaned": _spec("Cleaned, free again", *_ACCOUNT, "certificate"),
    "account.set_aside": _spec("Not fit to be lent, out of use", *_ACCOUNT, "certificate"),
    "account.quarantined": _spec("Put out of use", *_ACCOUNT),
    "account.restored": _spec("Restored", *_ACCOUNT),
    "account.retiring": _spec("Leaves the pool when it is given back", *_ACCOUNT),
    "account.retired": _spec("Left the pool", *_ACCOUNT, "certificate"),
    "account.cleaning_begun": _spec("Cleaning began", *_ACCOUNT, "run"),
    "account.clean_failed": _spec("Cleaning failed", *_ACCOUNT, "attempts", "error_code", "error", "certificate"),
    "account.clean_refused": _spec("Not cleaned: it must not be", *_ACCOUNT, "attempts", "error_code", "error", "certificate"),
    "account.result_dropped": _spec("The answer of a cleaning was dropped", *_ACCOUNT, "run"),
    "account.fence_raised": _spec("Counted on from a higher number after a restore", *_ACCOUNT),
    "lease.taken": _spec("Account taken", *_LEASE),
    "lease.started": _spec("Access proved, time runs", *_LEASE),
    "lease.prolonged": _spec("Lent for longer", *_LEASE),
    "lease.shortened": _spec("One of those for whom it is lent let go", *_LEASE),
    "lease.freeze_asked": _spec("Freeze ordered", *_LEASE),
    "lease.unfreeze_asked": _spec("Unfreeze ordered", *_LEASE),
    "lease.frozen": _spec("Frozen: access is off", *_LEASE),
    "lease.unfrozen": _spec("Access is on again", *_LEASE),
    "lease.freeze_delayed": _spec("Freeze or unfreeze waits", *_LEASE, "error", "attempts"),
    "lease.fence_raised": _spec("Counted on from a higher number after a restore", *_LEASE),
    "lease.budget_reached": _spec("Cost as much as its rule allows", *_LEASE, "verdict", "cost"),
    "lease.ended": _spec("Ended", *_LEASE),
    # clients: never anything that helps to guess a token's secret
    "token.created": _spec(
        "Token created", "name", "token_scope", "rate_per_minute", "expires_at", "tracks", "most_held", "home_scope", "check"
    ),
    "token.revoked": _spec("Token revoked", "reason"),
    # approvals and relationships, each with the seed's key text, and their scopes
    "approval.granted": _spec("Granted", *_SCOPED),
    "approval.extended": _spec("End moved", *_SCOPED),
    "approval.replaced": _spec("Granted anew", *_SCOPED),
    "approval.held": _spec("Held by a request", *_SCOPED),
    "approval.released": _spec("No longer held by a request", *_SCOPED),
    "approval.revoked": _spec("Revoked", *_SCOPED),
    "approval.expired": _spec("Over, and tidied away", *_SCOPED),
    "approval.deleted": _spec("Deleted with its scope", *_SCOPED),
    "approval.moved": _spec("Moved to another scope", "key", "moved_to"),
    "relationship.granted": _spec("Added", *_RELATED),
    "relationship.extended": _spec("End moved", *_RELATED),
    "relationship.replaced": _spec("Added anew", *_RELATED),
    "relationship.held": _spec("Held by a request", *_RELATED),
    "relationship.released": _spec("No longer held by a request", *_RELATED),
    "relationship.revoked": _spec("Removed", *_RELATED),
    "relationship.expired": _spec("Over, and tidied away", *_RELATED),
    "relationship.deleted": _spec("Deleted with its scope", *_RELATED),
    "relationship.moved": _spec("Moved to another scope", "key", "moved_to", "relation_type"),
    "authz_scope.opened": _spec("Scope opened"),
    "authz_scope.policy_set": _spec("Policy set", "policy", "old_policy"),
    "authz_scope.deletion_begun": _spec("Deletion begun"),
    "authz_scope.deleted": _spec("Deleted", "records", "proved_by"),
    # the tables: a restore, its steps, and that grants go on
    "restore.begun": _spec("Tables restored; grants held", "restored_to", "epoch"),
    "restore.step_done": _spec(
        "Step after a restore done", "step", "sessions", "tokens", "people", "sandboxes", "accounts", "quarantined", "brought_in", "failed"
    ),
    # events that are old
    "audit_log.removal_ordered": _spec("Removal of old events ordered", "before_at", "keep_days"),
    # people who were erased, by their pseudonyms
    "person.erasure_begun": _spec("Erasing a person began"),
    "person.erased": _spec("Person erased"),
    "restore.confirmed": _spec("Restore confirmed; grants go on", "ended", "cleaned"),
}
