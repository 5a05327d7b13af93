"""Reading the directory. Everything that a decision may stand on is strongly read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from accessportal.directory import policy, store
from accessportal.directory.states import Crowd, Group, Membership, Person
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page


def find_person(*, email: str) -> Person | None:
    """The person with this address, in any spelling of its letters; strongly read.

    :raises Unavailable: when the store did not answer.
    """
    key = policy.key_of(email)
    return store.get_person(key) if key else None


def groups_of(*, email: str, now: datetime) -> frozenset[str]:
    """The paths of the groups that a person is in, every group above included; empty for unknown or disabled people.

    Only groups that exist and are enabled count, and a membership counts only while its own group does.

    :raises Unavailable: when the store did not answer; never an empty set for that.
    """
    return find_person_with_groups(email=email, now=now)[1]


def find_person_with_groups(*, email: str, now: datetime) -> tuple[Person | None, frozenset[str]]:
    """What :func:`find_person` and :func:`groups_of` say, of one moment. Two strong requests (three above 100 groups).

    :raises Unavailable: when the store did not answer.
    """
    key = policy.key_of(email)
    if key is None:
        return None, frozenset()
    person, memberships = store.get_person_with_memberships(key)
    if person is None or not person.is_enabled:
        return person, frozenset()
    wanted = {above for membership in memberships for above in policy.with_ancestors(membership.group_id)}
    return person, policy.counted_groups(memberships, now=now, groups=store.get_groups(wanted))


def find_group(*, group_id: str) -> Group | None:
    """The group with this path, enabled or not; strongly read."""
    return store.get_group(group_id) if policy.is_group_id(group_id) else None


def people_in(*, groups: Collection[str], users: Collection[str] = (), now: datetime) -> Crowd:
    """The enabled people in these groups and in every group below, and these users if they are enabled.

    It agrees with :func:`groups_of`: somebody is here through ``groups`` exactly if one of them is among theirs. Index
    reads only find candidates; each group, membership and person is then strongly read, because the right to approve
    stands on it. Somebody added a moment ago may be missing until the index has caught up; nobody removed is ever here.

    :raises Unavailable: when the store did not answer.
    """
    asked = store.get_groups(filter(policy.is_group_id, groups))
    live = {group_id for group_id, group in asked.items() if group.is_enabled}
    keys = {membership.person for membership in _memberships_in(live) if membership.role_at(now)}
    keys.update(key for key in map(policy.key_of, users) if key)
    people = tuple(person for person in store.get_people(keys) if person.is_enabled)
    return Crowd(people=people, missing_groups=tuple(sorted(set(groups) - live)))


def list_people(*, prefix: str = "", cursor: str | None = None, limit: int = 50) -> Page[Person]:
    """People in order of address, those whose address starts with ``prefix``. It may lag a moment behind a change."""
    return store.page_of_people(prefix=prefix.strip().casefold(), cursor=cursor, limit=limit)


def list_groups(*, under: str = "/", cursor: str | None = None, limit: int = 50) -> Page[Group]:
    """Groups in order of path: all of them, or those below ``under`` at any depth. It may lag a moment behind a change.

    :raises InvalidRequest: when ``under`` is neither ``/`` nor a group path.
    """
    if under != "/" and not policy.is_group_id(under):
        raise InvalidRequest("Give / or a group path like /engineering.", code="group_id_invalid", field="under")
    return store.page_of_groups(prefix=under.rstrip("/") + "/", cursor=cursor, limit=limit)


def list_members(*, group_id: str, cursor: str | None = None, limit: int = 50) -> Page[Membership]:
    """The memberships directly in a group, in order of address. It may lag a moment behind a change.

    :raises InvalidRequest: when ``group_id`` is not a group path.
    """
    return store.page_of_members(policy.clean_group_id(group_id), cursor=cursor, limit=limit)


def _memberships_in(live: Collection[str]) -> Iterable[Membership]:
    """The memberships that count in the groups ``live`` (known to exist) and below."""
    tops = {group_id for group_id in live if not any(policy.is_below(group_id, other) for other in live)}
    below = {group.group_id for top in tops for group in store.every_group(prefix=top + "/")}
    enabled = {group_id for group_id, group in store.get_groups(below - set(live)).items() if group.is_enabled} | set(live)
    candidates = [membership for group_id in sorted(enabled) for membership in store.every_member(group_id)]
    return store.get_memberships(candidates)
