"""People, with what they are in, and groups as their events tell them."""

from __future__ import annotations

from typing import Any

from accessportal.audit.queries import mark_of
from accessportal.audit.states import AuditEvent
from accessportal.directory.states import PERMANENT, PERSON_DELETED, PersonHolding, is_by_admin
from accessportal.evidence.replay.telling import EXISTS, GONE, NOTHING, UNTOLD, Facts, Kind, of, sets
from accessportal.kernel.clock import epoch_of

ABOVE = "ancestors"
"""The fact of a group that follows from the groups above: its own events tell the nearest."""
_IN = "in "
_UNTIL = " until "


def _claim(group_id: str, claim_id: str) -> str:
    return f"{_IN}{group_id} by {claim_id}"


def _held(role: str, ends_at: int | None) -> str:
    return role if ends_at is None else f"{role}{_UNTIL}{ends_at}"


def _granted(event: AuditEvent, before: Facts) -> Facts:
    group_id, claim_id = event.data["group_id"], event.data["claim"]
    told: dict[str, Any] = {_claim(group_id, claim_id): _held(event.data["role"], event.data.get("ends_at"))}
    if claim_id == PERMANENT:
        told |= {name: None for name, held in before.items() if _makes_way(name, held, group_id)}
    return told


def _makes_way(name: str, held: Any, group_id: str) -> bool:
    """What admins gave for a time makes way for what one gives for good."""
    beginning = _claim(group_id, "")
    return name.startswith(beginning) and held is not None and _UNTIL in held and is_by_admin(name.removeprefix(beginning))


def _revoked(event: AuditEvent, before: Facts) -> Facts:
    group_id = event.data["group_id"]
    if event.data.get("reason") == PERSON_DELETED:
        # One event tells of all claims.
        return {name: None for name in before if name.startswith(_claim(group_id, ""))}
    return {_claim(group_id, event.data["claim"]): None}


def _signed_in(event: AuditEvent, _before: Facts) -> Facts:
    """The account of the sign-in service is kept, also while nobody has the address. Who came in without one has changed nothing."""
    return {"identity": event.data.get("identity", UNTOLD)} if event.data.get("issuer") else {}


def _facts_of_person(one: PersonHolding) -> dict[str, Any]:
    held = {
        _claim(membership.group_id, claim.claim_id): _held(claim.role.value, epoch_of(claim.ends_at))
        for membership in one.memberships
        for claim in membership.claims
    }
    if one.person is None:
        return held
    return held | _facts_of_themselves(one.person) | {"identity": mark_of(one.person.identity)}


_facts_of_themselves = of("email", "name", "state")

PERSON = Kind(
    acts={
        "user.created": sets("email", "name", "state", **{EXISTS: True}),
        "user.enabled": sets("state"),
        "user.disabled": sets("state"),
        "user.renamed": sets("name"),
        "user.deleted": GONE,
        "user.granted": _granted,
        "user.role_changed": _granted,
        "user.revoked": _revoked,
        "user.signed_in": _signed_in,
        "user.signed_out": NOTHING,
        "user.identity_forgotten": sets(identity=""),
    },
    facts=_facts_of_person,
    many=_IN,
)

GROUP = Kind(
    acts={
        "group.created": sets("name", "description", "state", "parent_id", **{EXISTS: True}),
        "group.renamed": sets("name", "description"),
        "group.moved": sets("parent_id"),
        "group.enabled": sets("state"),
        "group.disabled": sets("state"),
        "group.deleted": GONE,
    },
    facts=of("name", "description", "state", ABOVE, parent_id=lambda group: group.parent_id or ""),
)
