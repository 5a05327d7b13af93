"""What gives access by itself, as its events tell it: assignments, tokens, rules, stand-ins, approvals, relationships; and restores of the
tables."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from accessportal.assignments.states import AssignmentState
from accessportal.audit.states import AuditEvent
from accessportal.authz.states import DIRECT, KEPT, ScopeState, TtlPolicy
from accessportal.evidence.replay.telling import (
    EXISTS,
    GONE,
    NOTHING,
    UNTOLD,
    Among,
    Facts,
    Kind,
    actor,
    data,
    joined,
    moment,
    of,
    parted,
    sets,
    subject,
)
from accessportal.kernel.clock import to_epoch
from accessportal.rules.states import RuleVersions


def _claimed(event: AuditEvent, before: Facts) -> Facts:
    return {"claims": event.data["claims"]} if before else {"claims": event.data["claims"], "state": AssignmentState.ABSENT.value}


def _adopted(event: AuditEvent, before: Facts) -> Facts:
    """Of one that was known, the claims stay; its fence is not told."""
    told = {"state": event.data["state"], "fence": UNTOLD}
    return told if before else told | {"claims": event.data["claims"]}


_TURNED = sets("state", "fence")

ASSIGNMENT = Kind(
    acts={
        "assignment.claimed": _claimed,
        "assignment.released": sets("claims"),
        "assignment.creating": _TURNED,
        "assignment.deleting": _TURNED,
        "assignment.present": _TURNED,
        "assignment.absent": _TURNED,
        "assignment.adopted": _adopted,
        "assignment.fence_raised": sets("fence"),
        "assignment.job_started": NOTHING,
        "assignment.job_forgotten": NOTHING,
    },
    facts=of("state", "fence", "claims"),
)

_facts_of_its_own = of(
    "name",
    "rate_per_minute",
    "scope",
    "expires_at",
    "most_held",
    "home_scope",
    "created_by",
    "created_at",
    "revoked_by",
    "revoked_at",
    tracks=lambda token: sorted(token.tracks),
)


TOKEN = Kind(
    acts={
        "token.created": sets(
            "name",
            "rate_per_minute",
            "check",
            scope=data("token_scope"),
            expires_at=data("expires_at", None),
            tracks=lambda event: sorted(event.data.get("tracks", ())),
            most_held=data("most_held", None),
            home_scope=data("home_scope", ""),
            created_by=actor,
            created_at=moment,
            revoked_by="",
            revoked_at=None,
        ),
        "token.revoked": sets(revoked_by=actor, revoked_at=moment),
    },
    facts=lambda one: _facts_of_its_own(one.token) | {"check": one.check},
)

_VERSION = "version "


def _rule_written(event: AuditEvent, _before: Facts) -> Facts:
    return {f"{_VERSION}{event.data['version']}": event.data["hash"], "removed": False}


def _rule_removed(event: AuditEvent, _before: Facts) -> Facts:
    return {f"{_VERSION}{event.data['version']}": UNTOLD, "removed": True}


def _facts_of_rule(one: RuleVersions) -> dict[str, Any]:
    return {"removed": one.is_removed, **{f"{_VERSION}{number}": text for number, text in one.versions.items()}}


RULE = Kind(
    acts={"rule.added": _rule_written, "rule.changed": _rule_written, "rule.removed": _rule_removed}, facts=_facts_of_rule, many=_VERSION
)


def _applied(event: AuditEvent, _before: Facts) -> Facts:
    """Older ones tell no versions."""
    order, versions = event.data["order"], event.data.get("versions")
    told = {f"{_VERSION}{event.data['version']}": " ".join(order)}
    if versions is None:
        return told
    return told | {_of_each(event.data["version"]): versions}


def _of_each(number: int) -> str:
    return f"versions in set {number}"


def _facts_of_sets(one: RuleVersions) -> dict[str, Any]:
    each = {_of_each(number): list(versions) for number, versions in one.of_each.items()}
    return {f"{_VERSION}{number}": text for number, text in one.versions.items()} | each


RULE_SET = Kind(
    acts={"rules.applied": _applied},
    facts=_facts_of_sets,
    many=_VERSION,
)


def _is_over(facts: Facts, now: datetime) -> bool:
    """DynamoDB deletes what is over, some time after its ``purge_at``; it gives nothing any more."""
    ends_at = facts.get("ends_at")
    return isinstance(ends_at, int) and to_epoch(now) >= ends_at


STAND_IN = Kind(
    acts={
        "stand_in.named": sets(
            "starts_at", "ends_at", "note", stand_in=subject, approver=actor, named_at=moment, ended_by="", ended_at=None
        ),
        "stand_in.ended": sets(ended_by=actor, ended_at=moment),
    },
    facts=of("stand_in", "approver", "named_at", "starts_at", "ends_at", "note", "ended_by", "ended_at"),
    may_vanish=_is_over,
)


def _granted(event: AuditEvent, _before: Facts) -> Facts:
    told = {"key": event.data["key"], EXISTS: True, **_end_and_type(event)}
    return told | {"holders": [event.data.get("claim", DIRECT)]}


def _end_and_type(event: AuditEvent) -> Facts:
    """Approvals have no type, and older events do not tell it."""
    return {"expires_at": event.data.get("expires_at"), "relation_type": event.data.get("relation_type", UNTOLD)}


def _given_more(event: AuditEvent, before: Facts) -> Facts:
    return {**_end_and_type(event), "holders": joined(before.get("holders", UNTOLD), event.data.get("claim", DIRECT))}


def _held(event: AuditEvent, before: Facts) -> Facts:
    """What was over by then begins anew, for this claim alone."""
    claim, over_at = event.data["claim"], before.get("expires_at")
    seconds_left = over_at - event.at.timestamp() if isinstance(over_at, int) else float("inf")
    known: Any = before.get("holders", UNTOLD) if seconds_left > 1 else [] if seconds_left < -1 else UNTOLD
    return {**_end_and_type(event), "holders": joined(known, claim)}


def _released(event: AuditEvent, before: Facts) -> Facts:
    """With the claim those go that are over."""
    left = parted(before.get("holders", UNTOLD), event.data["claim"])
    return {**_end_and_type(event), "holders": Among(tuple(left)) if isinstance(left, list) else left}


def _may_vanish(facts: Facts, now: datetime) -> bool:
    """DynamoDB deletes what the sweep has left for too long."""
    expires_at = facts.get("expires_at")
    return isinstance(expires_at, int) and to_epoch(now - KEPT) >= expires_at


def _ledger(word: str) -> Kind:
    return Kind(
        acts={
            f"{word}.granted": _granted,
            f"{word}.extended": _given_more,
            f"{word}.replaced": _given_more,
            f"{word}.held": _held,
            f"{word}.released": _released,
            f"{word}.revoked": GONE,
            f"{word}.expired": GONE,
            f"{word}.deleted": GONE,
            f"{word}.moved": GONE,
        },
        facts=of(
            "key",
            "expires_at",
            holders=lambda record: sorted(record.held_until),
            relation_type=lambda record: getattr(record, "relation_type", None),
        ),
        may_vanish=_may_vanish,
    )


APPROVAL, RELATIONSHIP = _ledger("approval"), _ledger("relationship")


def _opened(event: AuditEvent, before: Facts) -> Facts:
    """For the first time without a policy."""
    return {"state": ScopeState.OPEN.value, "policy": None if event.sequence == 1 else before.get("policy", UNTOLD)}


SCOPE = Kind(
    acts={
        "authz_scope.opened": _opened,
        "authz_scope.policy_set": sets(state=ScopeState.OPEN.value, policy=data("policy", None)),
        "authz_scope.deletion_begun": sets(state=ScopeState.DELETING.value),
        "authz_scope.deleted": sets(state=ScopeState.DELETED.value, policy=None),
    },
    facts=of("state", policy=lambda scope: _policy_of(scope.policy)),
)


def _policy_of(policy: TtlPolicy | None) -> dict[str, Any] | None:
    return None if policy is None else {name: value for name, value in asdict(policy).items() if value is not None}


RESTORE = Kind(
    acts={
        "restore.begun": sets("restored_to", "epoch", begun_by=actor, done=[], confirmed_by=""),
        "restore.step_done": lambda event, before: {"done": joined(before.get("done", UNTOLD), event.data["step"])},
        "restore.confirmed": sets(confirmed_by=actor),
    },
    facts=of("restored_to", "epoch", "begun_by", "done", "confirmed_by"),
)
