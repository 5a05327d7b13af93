"""Items to records and back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.policy.tree import path_ancestors
from accessportal.directory.states import PERMANENT, Claim, Group, GroupRole, Membership, Person, State, highest
from accessportal.kernel.clock import from_epoch
from accessportal.store.records import form_of

_CLAIM = form_of(Claim)


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
        stored = sorted(item.claims.as_dict().items())
        claims = tuple(_CLAIM.load({**values, "claim_id": claim_id}) for claim_id, values in stored)
    return Membership(models.person_in(item), models.group_in(item), claims, created_at=created_at, created_by=by)


def claims_value(claims: Iterable[Claim]) -> dict[str, Any]:
    """The attribute ``claims``: claim id to role, end (epoch seconds, absent for none), and when and by whom it was given."""
    stored = map(_CLAIM.store, claims)
    return {values.pop("claim_id"): values for values in stored}


def role_value(membership: Membership, *, now: datetime) -> str:
    """The seed's attribute ``role``: the highest at this write."""
    role = membership.role_at(now) or highest(*(claim.role for claim in membership.claims))
    assert role is not None, "a membership is held by at least one claim"
    return role.value


def iso(moment: datetime) -> str:
    """The seed's form of a time: ``2022-08-10T23:55:20.322Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
