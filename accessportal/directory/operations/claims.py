"""Claims of requests on memberships: what the workflow gives for a time. The workflow has decided already who may have it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from accessportal.directory.following import follow
from accessportal.directory.operations.finding import group_named, held_by, membership_in
from accessportal.directory.operations.memberships import require_grantable, with_claim, without_claims
from accessportal.directory.operations.writing import about_membership, ask_to_look, settled, told_person
from accessportal.directory.states import Claim, Membership, person_entity, under
from accessportal.directory.store.given import forget_given, list_given
from accessportal.directory.store.people import MembershipChange, PersonChange, write_person
from accessportal.directory.store.reading import get_group
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, from_epoch, to_epoch
from accessportal.kernel.errors import NotFound, Unavailable
from accessportal.store.transactions import Guard


def add_claim(*, email: str, group_id: str, claim: Claim, guards: Sequence[Guard], actor: Actor, now: datetime) -> Membership:
    """Add a request's ``claim`` to a membership; write nothing when it is there already with this role and end. ``guards`` are the caller's
    conditions for still wanting it. :raises Conflict: when one fails, person or group is disabled, or a limit is reached."""
    ends_at = None if claim.ends_at is None else from_epoch(to_epoch(claim.ends_at))
    wanted = replace(claim, ends_at=ends_at, given_at=now, given_by=actor.name)

    def attempt() -> Membership:
        group = group_named(group_id)
        person, memberships = held_by(email)
        before = membership_in(memberships, group_id)
        present = before.claim(claim.claim_id) if before else None
        if before is not None and present is not None and (present.role, present.ends_at) == (wanted.role, wanted.ends_at):
            return before
        require_grantable(person, group, wanted.role, memberships)
        after = with_claim(before, wanted, person=person.key, group_id=group_id)
        draft = about_membership("user.granted", wanted, after, of=after, now=now)
        changed, events = told_person(person, [draft], actor=actor, now=now)
        change = PersonChange(person, changed, [MembershipChange(before, after, is_grant=True)])
        write_person(change, events=events, further=guards, by=actor.name, at=now)
        return after

    return settled(attempt, guards=guards)


def remove_claim(*, email: str, group_id: str, claim_id: str, actor: Actor, now: datetime) -> Membership | None:
    """Take ``claim_id`` off a membership and return what the other claims leave of it (``None``: nothing). The person stays, in whatever
    groups: who came by a request was there before."""

    def attempt() -> Membership | None:
        person, memberships = held_by(email)
        before = membership_in(memberships, group_id)
        claim = before.claim(claim_id) if before else None
        if before is None or claim is None:
            return before
        after = without_claims(before, [claim])
        draft = about_membership("user.revoked", claim, after, of=before, now=now)
        changed, events = told_person(person, [draft], actor=actor, now=now)
        exists = get_group(group_id) is not None
        change = PersonChange(person, changed, [MembershipChange(before, after, group_exists=exists)])
        write_person(change, events=events, by=actor.name, at=now)
        return after

    left = settled(attempt)
    ask_to_look()
    return left


def take_back_given(claim_id: str, *, actor: Actor, clock: Clock) -> None:
    """Take away what somebody gave as an admin by ``claim_id``, after that claim is gone: nothing more can be given with it then. One
    person who can't be read holds up no other. :raises Unavailable: at the end, for such a one."""
    failed: Unavailable | None = None
    for given in list_given(claim_id):
        try:
            with contextlib.suppress(NotFound):
                remove_claim(email=given.person, group_id=given.group_id, claim_id=under(claim_id), actor=actor, now=clock.now())
            forget_given(claim_id, given)
        except Unavailable as error:
            failed = error
        else:
            follow(entity=person_entity(given.person), now=clock.now())
    if failed is not None:
        raise failed
