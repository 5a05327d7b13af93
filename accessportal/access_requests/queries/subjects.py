"""The subject of a request: the person who asks, or a group that they are in. Its facts are as the book has them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.states import Presence, Subject
from accessportal.directory import queries as directory
from accessportal.directory.states import Group
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.rules.states import Effect


def subject_facts(subject_id: str | None, actor: Actor, *, book: ApproverBook) -> Subject:
    """Return the subject of a request that ``actor`` makes (``None``: themselves). NotAllowed when the actor is unknown or disabled, or
    asks for another person or a group that they are not in."""
    wanted = actor.name if subject_id is None else subject_id.strip()
    if not wanted.startswith("/"):
        if fold_email(wanted) != actor.name:
            raise NotAllowed("You can ask for yourself, or for a group that you are in.", code="subject_not_you")
        return facts_of(actor.name, book=book)
    person, groups, _ = directory.find_person_with_groups(email=actor.name, now=book.now, book=book.directory)
    found = facts_of(wanted, book=book)
    if person is None or wanted not in groups:
        raise NotAllowed(f"You are not in {wanted}; ask somebody who is.", code="subject_not_yours")
    return replace(found, requester_name=person.name, requester_identity=person.identity)


def facts_of(subject_id: str, *, book: ApproverBook) -> Subject:
    """Return the facts of any person (by address) or group (by id), whoever asks. NotAllowed when the person is unknown or disabled,
    InvalidRequest when the group does not exist."""
    if subject_id.startswith("/"):
        return _group_facts(subject_id, book)
    person, groups, direct = directory.find_person_with_groups(email=subject_id, now=book.now, book=book.directory)
    if person is None:
        raise NotAllowed(f"The directory does not know {fold_email(subject_id)}.", code="person_unknown")
    if not person.is_enabled:
        raise NotAllowed(f"{person.email} is disabled in the directory.", code="person_disabled")
    return Subject(
        subject_id=person.key,
        name=person.name,
        groups=groups,
        requester_name=person.name,
        requester_identity=person.identity,
        direct=direct,
    )


def presence_of(subject_id: str, *, without: Collection[str] = (), book: ApproverBook) -> Presence:
    """Tell what the directory says of a subject now; ``without``: claims on memberships that don't count. Unavailable when it could not be
    read; never an absence for that."""
    if subject_id.startswith("/"):
        group = book.directory.groups([subject_id]).get(subject_id)
        if group is None:
            return Presence(exists=False)
        return Presence(exists=True, is_enabled=group.is_enabled, created_at=group.created_at, groups=_groups_with(group, book))
    person, groups, direct = directory.find_person_with_groups(email=subject_id, without=without, now=book.now, book=book.directory)
    if person is None:
        return Presence(exists=False)
    return Presence(exists=True, is_enabled=person.is_enabled, created_at=person.created_at, groups=groups, direct=direct)


def _group_facts(group_id: str, book: ApproverBook) -> Subject:
    group = book.directory.groups([group_id]).get(group_id)
    if group is None:
        raise InvalidRequest(f"There is no group {group_id[:80]}. Choose one that you are in.", code="group_unknown", field="subject")
    if not group.is_enabled:
        raise InvalidRequest(f"The group {group_id} is disabled. Choose another one.", code="group_disabled", field="subject")
    return Subject(
        subject_id=group_id,
        name=group.name or group_id,
        groups=_groups_with(group, book),
        requester_name="",
        below=_below_and_denied(group_id, book),
    )


def _below_and_denied(group_id: str, book: ApproverBook) -> frozenset[str]:
    """The groups below that a deny rule names: no other group below makes a difference, and a big tree has many."""
    denied = [rule.subjects for rule in book.rules.values() if rule.effect is Effect.DENY]
    named = {name for who in denied for name in (*who.groups, *who.groups_only)}
    return frozenset(one.group_id for one in book.directory.groups(named).values() if group_id in one.ancestors)


def _groups_with(group: Group, book: ApproverBook) -> frozenset[str]:
    """Of the groups above, each counts for itself, as for a person (``directory.queries.groups_of``)."""
    above = book.directory.groups(group.ancestors)
    return frozenset(other.group_id for other in above.values() if other.is_enabled) | {group.group_id}
