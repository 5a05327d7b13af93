"""Items to records and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.policy.tree import path_ancestors
from accessportal.directory.states import PERMANENT, Claim, Group, GroupRole, Membership, Person, State, highest
from accessportal.kernel.clock import from_epoch, to_epoch


def to_person(item: DirectoryItem) -> Person:
    key = models.person_in(item)
    email = item.email or key
    return Person(
        key=key,
        email=email,
        name=item.display_name or email,
        state=State(item.state),
        created_at=_moment(item.created_at),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
        is_deleting=bool(item.deleting),
        signed_in_at=_moment(item.signed_in_at) if item.signed_in_at else None,
        identity=item.identity or "",
        outlasts_groups=bool(item.outlasts_groups),
    )


def to_group(item: DirectoryItem) -> Group:
    """An item that does not say where it stands was written by another program: it stands by its path."""
    group_id = models.group_in(item)
    return Group(
        group_id=group_id,
        name=item.name or group_id,
        description=item.description or "",
        state=State(item.state),
        ancestors=path_ancestors(group_id) if item.ancestors is None else tuple(item.ancestors),
        member_count=int(item.member_count or 0),
        child_count=int(item.child_count or 0),
        tree_version=int(item.tree_version or 0),
        admins=frozenset(item.admins or ()),
        standing_admins=frozenset(item.standing_admins or ()),
        created_at=_moment(item.created_at) if item.created_at else None,
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
    )


def to_membership(item: DirectoryItem) -> Membership:
    """An item without claims (another program's) is held by the permanent one."""
    created_at = _moment(item.created_at) if item.created_at else from_epoch(0)
    by = item.created_by or ""
    if item.claims is None:
        claims: tuple[Claim, ...] = (Claim(PERMANENT, GroupRole(item.role), given_at=created_at, given_by=by),)
    else:
        claims = tuple(_claim(claim_id, stored) for claim_id, stored in sorted(item.claims.as_dict().items()))
    return Membership(models.person_in(item), models.group_in(item), claims, created_at=created_at, created_by=by)


def claims_value(claims: Iterable[Claim]) -> dict[str, Any]:
    """The attribute ``claims``: claim id to role, end (epoch seconds, absent for none), and when and by whom it was given."""
    return {claim.claim_id: _stored(claim) for claim in claims}


def role_value(membership: Membership, *, now: datetime) -> str:
    """The seed's attribute ``role``: the highest at this write."""
    role = membership.role_at(now) or highest(*(claim.role for claim in membership.claims))
    assert role is not None, "a membership is held by at least one claim"
    return role.value


def iso(moment: datetime) -> str:
    """The seed's form of a time: ``2022-08-10T23:55:20.322Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _claim(claim_id: str, stored: Mapping[str, Any]) -> Claim:
    ends_at, given_at = stored.get("ends_at"), stored.get("given_at")
    return Claim(
        claim_id,
        GroupRole(stored["role"]),
        ends_at=None if ends_at is None else from_epoch(ends_at),
        given_at=None if given_at is None else from_epoch(given_at),
        given_by=str(stored.get("given_by", "")),
    )


def _stored(claim: Claim) -> dict[str, Any]:
    stored: dict[str, Any] = {"role": claim.role.value}
    if claim.ends_at is not None:
        stored["ends_at"] = to_epoch(claim.ends_at)
    if claim.given_at is not None:
        stored["given_at"] = to_epoch(claim.given_at)
    if claim.given_by:
        stored["given_by"] = claim.given_by
    return stored


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
