"""Giving and taking memberships for good. What requests give for a time is in ``claims``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from accessportal.audit.states import Draft
from accessportal.directory.operations.finding import group_named, held_by, membership_in, require_not_deleting
from accessportal.directory.operations.last_root_admin import require_another_root_admin
from accessportal.directory.operations.rights import require_group_right, require_right_to_give, require_right_to_take
from accessportal.directory.operations.writing import about_membership, ask_to_look, mirrored, settled, told_person
from accessportal.directory.queries.rights import may_leave
from accessportal.directory.states import PERMANENT, Changed, Claim, GivenRole, Group, GroupRole, GroupVerb, Membership, Person, under
from accessportal.directory.store.given import note_steps
from accessportal.directory.store.people import MOST_ADMINS, MembershipChange, PersonChange, write_person
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import Conflict, NotFound

# Cognito's limit for one user.
MOST_MEMBERSHIPS = 100


@dataclass(frozen=True, slots=True)
class Given:
    """A membership to be written with the person, and the event that tells it."""

    change: MembershipChange
    draft: Draft
    makes_standing_admin: bool


def grant_membership(*, email: str, group_id: str, role: GroupRole, actor: Actor, now: datetime) -> Changed[Person]:
    """Put a person into the group with ``role`` for good, in place of what admins gave them there before; what requests give stays. Who is
    admin for a time gives it until that is over, and neither the role admin nor anything to themselves."""

    def attempt() -> Person:
        group = group_named(group_id)
        right = require_right_to_give(group, role, to=fold_email(email), is_new=False, actor=actor, now=now)
        person, memberships = held_by(email)
        before = membership_in(memberships, group_id)
        claim = Claim(
            PERMANENT if right is None else under(right.claim_id),
            role,
            ends_at=right.ends_at if right else None,
            given_at=now,
            given_by=actor.name,
        )
        former = _require_gain(person, before, claim)
        require_grantable(person, group, role, memberships)
        kept = before
        if before is not None and right is None:
            # What admins gave for a time makes way for what one gives for good.
            kept = before.without([one.claim_id for one in before.claims if one.is_by_admin and one.ends_at is not None])
        after = with_claim(kept, claim, person=person.key, group_id=group_id)
        draft = _granted(claim, former, after, now=now)
        standing = _standing_after(person, group, former, claim)
        changed, events = told_person(_kept(person, memberships), [draft], actor=actor, now=now)
        change = PersonChange(person, changed, [MembershipChange(before, after, is_grant=True)], standing=standing)
        if right is None:
            write_person(change, events=events, by=actor.name, at=now)
        else:
            given = GivenRole(person.key, group_id)
            steps = note_steps(right.claim_id, given, giver=actor.name, right_on=right.group_id)
            write_person(change, events=events, further=steps, by=actor.name, at=now)
        return changed

    person = settled(attempt)
    return mirrored(person, entity=person.entity, now=now)


def revoke_membership(*, email: str, group_id: str, actor: Actor, now: datetime) -> Changed[Person | None]:
    """Take away what admins gave the person in the group; what requests give stays. Whoever is then in no group is deleted, as seed 001
    says (the record is ``None``), but a disabled person and one who was in no group before: see ``docs/subsystems/directory.md``."""

    def attempt() -> tuple[Person, bool]:
        group = group_named(group_id)
        require_group_right(GroupVerb.REVOKE, group, actor=actor, now=now)
        person, memberships = held_by(email)
        before, claims = _given_by_admins(person, memberships, group_id)
        require_right_to_take(claims, group, actor=actor, now=now)
        permanent = before.claim(PERMANENT)
        standing = _standing_after(person, group, permanent, None)
        after = without_claims(before, claims)
        drafts = [about_membership("user.revoked", claim, after, of=before, now=now) for claim in claims]
        is_last = after is None and len(memberships) == 1 and person.is_enabled and not person.outlasts_groups and permanent is not None
        if is_last:
            drafts.append(about_deletion(person, reason="the last membership was revoked"))
        changed, events = told_person(person, drafts, actor=actor, now=now)
        change = PersonChange(person, None if is_last else changed, [MembershipChange(before, after)], standing=standing)
        write_person(change, events=events, by=actor.name, at=now)
        return changed, is_last

    person, is_gone = settled(attempt)
    ask_to_look()
    return mirrored(None if is_gone else person, entity=person.entity, now=now)


def leave_group(*, group_id: str, actor: Actor, now: datetime) -> Changed[Person]:
    """Let the actor out of what a group's admin put them into without asking. What requests give there stays, and the person stays in the
    directory. :raises NotAllowed: for what an admin of the root or the portal gave."""

    def attempt() -> Person:
        group = group_named(group_id)
        may_leave(group=group, actor=actor).require()
        person, memberships = held_by(actor.name)
        before, claims = _given_by_admins(person, memberships, group_id)
        standing = _standing_after(person, group, before.claim(PERMANENT), None)
        after = without_claims(before, claims)
        drafts = [about_membership("user.revoked", claim, after, of=before, now=now, reason="left by themselves") for claim in claims]
        changed, events = told_person(person, drafts, actor=actor, now=now)
        change = PersonChange(person, changed, [MembershipChange(before, after)], standing=standing)
        write_person(change, events=events, by=actor.name, at=now)
        return changed

    person = settled(attempt)
    ask_to_look()
    return mirrored(person, entity=person.entity, now=now)


def first_membership(key: str, group_id: str, role: GroupRole, *, actor: Actor, now: datetime) -> Given:
    """Make the permanent membership that a new person gets at once, judged as by :func:`grant_membership`."""
    group = group_named(group_id)
    require_right_to_give(group, role, to=key, is_new=True, actor=actor, now=now)
    require_room(group, role, before=None)
    claim = Claim(PERMANENT, role, given_at=now, given_by=actor.name)
    membership = with_claim(None, claim, person=key, group_id=group_id)
    draft = about_membership("user.granted", claim, membership, of=membership, now=now)
    is_standing = group.is_root and role is GroupRole.ADMIN
    return Given(MembershipChange(None, membership, is_grant=True), draft, is_standing)


def require_grantable(person: Person, group: Group, role: GroupRole, memberships: Sequence[Membership]) -> None:
    """:raises Conflict: when the person can't be given this role: somebody is disabled, or a limit is reached."""
    require_not_deleting(person)
    if not person.is_enabled:
        raise Conflict(f"{person.email} is disabled. Enable the person first.", code="person_disabled", present=person)
    before = membership_in(memberships, group.group_id)
    if before is None and len(memberships) >= MOST_MEMBERSHIPS:
        raise Conflict(
            f"{person.email} is in {len(memberships)} groups, and Cognito has room for {MOST_MEMBERSHIPS}. Revoke one first.",
            code="too_many_memberships",
            present=person,
        )
    require_room(group, role, before=before)


def require_room(group: Group, role: GroupRole, *, before: Membership | None) -> None:
    """:raises Conflict: when the group is disabled, or has as many admins as it can."""
    if not group.is_enabled:
        raise Conflict(f"The group {group.group_id} is disabled. Enable it first.", code="group_disabled", present=group)
    is_one_more = role is GroupRole.ADMIN and not (before and before.has_admin_claim)
    if is_one_more and len(group.admins) >= MOST_ADMINS:
        raise Conflict(
            f"{group.group_id} has {MOST_ADMINS} admins, as many as it can. Take one away first, or choose another role.",
            code="too_many_admins",
            present=group,
        )


def with_claim(before: Membership | None, claim: Claim, *, person: str, group_id: str) -> Membership:
    """The membership with ``claim``, which takes the place of one with the same id."""
    if before is None:
        assert claim.given_at is not None, "a new claim says when it was given"
        return Membership(person, group_id, (claim,), created_at=claim.given_at, created_by=claim.given_by)
    others = tuple(one for one in before.claims if one.claim_id != claim.claim_id)
    return replace(before, claims=(*others, claim))


def without_claims(before: Membership, claims: Sequence[Claim]) -> Membership | None:
    """Return the membership as the other claims hold it; ``None`` when there are none."""
    after = before.without([one.claim_id for one in claims])
    return after if after.claims else None


def about_deletion(person: Person, *, reason: str) -> Draft:
    return Draft("user.deleted", person.key, {"email": person.email, "name": person.name, "reason": reason})


def _kept(person: Person, memberships: Sequence[Membership]) -> Person:
    """Whoever is in no group for good, and here all the same, is not to be deleted by the one who adds them now."""
    return person if any(one.claim(PERMANENT) for one in memberships) else replace(person, outlasts_groups=True)


def _granted(claim: Claim, former: Claim | None, after: Membership, *, now: datetime) -> Draft:
    if former is None:
        return about_membership("user.granted", claim, after, of=after, now=now)
    return about_membership("user.role_changed", claim, after, of=after, now=now, old_role=former.role.value)


def _require_gain(person: Person, before: Membership | None, claim: Claim) -> Claim | None:
    """Return the claim whose place ``claim`` takes. :raises Conflict: when the person has as much already: this very thing, or for good
    what would be given for a time."""
    former = before.claim(claim.claim_id) if before else None
    is_same = former is not None and (former.role, former.ends_at) == (claim.role, claim.ends_at)
    permanent = before.claim(PERMANENT) if before else None
    has_more = claim.ends_at is not None and permanent is not None and permanent.role.rank >= claim.role.rank
    if is_same or has_more:
        held = permanent if has_more and permanent is not None else claim
        group_id = before.group_id if before else ""
        raise Conflict(f"{person.email} is in {group_id} already, as {held.role.value}.", code="membership_exists", present=before)
    return former


def _given_by_admins(person: Person, memberships: Sequence[Membership], group_id: str) -> tuple[Membership, list[Claim]]:
    """The person's membership in the group, and what admins gave of it. :raises Conflict: when there is nothing of the kind."""
    require_not_deleting(person)
    before = membership_in(memberships, group_id)
    if before is None:
        raise NotFound(f"{person.email} is not directly in {group_id}.", code="membership_not_found")
    claims = [claim for claim in before.claims if claim.is_by_admin]
    if not claims:
        requests = ", ".join(one.claim_id for one in before.claims)
        raise Conflict(
            f"{person.email} is in {group_id} only by request ({requests}). End the request to take it away.",
            code="membership_temporary",
            present=before,
        )
    return before, claims


def _standing_after(person: Person, group: Group, former: Claim | None, claim: Claim | None) -> bool | None:
    """Say what the change does to the root's standing admins. :raises Conflict: when it would take the last one."""
    was = former is not None and former.role is GroupRole.ADMIN
    is_now = claim is not None and claim.role is GroupRole.ADMIN
    if not group.is_root or not person.is_enabled or was is is_now:
        return None
    if was:
        require_another_root_admin(person)
    return is_now
