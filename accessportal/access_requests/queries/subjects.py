"""The subject of a request: the person who asks, or a group that they are in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.directory import queries as directory
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import InvalidRequest, NotAllowed


@dataclass(frozen=True, slots=True)
class Subject:
    """``groups`` are those that the subject is in, ancestors included; a group is in itself."""

    subject_id: str
    name: str
    groups: frozenset[str]
    requester_name: str


def subject_facts(subject_id: str | None, actor: Actor, *, now: datetime, is_member_needed: bool = True) -> Subject:
    """The live facts of the subject; ``None`` is the actor.

    :raises NotAllowed: when the actor is unknown or disabled, or asks for another person or a group that they are not in.
    :raises InvalidRequest: when the group does not exist.
    """
    wanted = actor.name if subject_id is None else subject_id.strip()
    if wanted.startswith("/"):
        return _group_facts(wanted, actor, now=now, is_member_needed=is_member_needed)
    if fold_email(wanted) != actor.name:
        raise NotAllowed("You can ask for yourself, or for a group that you are in.", code="subject_not_you")
    person, groups = directory.find_person_with_groups(email=actor.name, now=now)
    if person is None:
        raise NotAllowed(f"The directory does not know {actor.name}.", code="person_unknown")
    if not person.is_enabled:
        raise NotAllowed(f"{person.email} is disabled in the directory.", code="person_disabled")
    return Subject(subject_id=person.key, name=person.name, groups=groups, requester_name=person.name)


def _group_facts(group_id: str, actor: Actor, *, now: datetime, is_member_needed: bool) -> Subject:
    group = directory.find_group(group_id=group_id)
    if group is None:
        raise InvalidRequest(f"There is no group {group_id[:80]}. Choose one that you are in.", code="group_unknown", field="subject")
    name = ""
    if is_member_needed:
        person, groups = directory.find_person_with_groups(email=actor.name, now=now)
        if person is None or group_id not in groups:
            raise NotAllowed(f"You are not in {group_id}; ask somebody who is.", code="subject_not_yours")
        name = person.name
    return Subject(subject_id=group_id, name=group.name or group_id, groups=groups_above(group_id), requester_name=name)


def groups_above(group_id: str) -> frozenset[str]:
    """The group itself and every group above it."""
    parts = group_id.strip("/").split("/")
    return frozenset("/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
