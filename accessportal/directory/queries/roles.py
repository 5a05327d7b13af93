"""Which groups and roles somebody has, and who has them: strongly read, judged at the moment that is passed in."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from accessportal.directory.policy.tree import counted_groups, effective_roles, path_ancestors, right_at
from accessportal.directory.policy.words import is_group_id, key_of
from accessportal.directory.states import Crowd, EffectiveRole, Group, GroupRole, Membership, Person
from accessportal.directory.store.reading import (
    every_group,
    every_member,
    get_group,
    get_groups,
    get_memberships,
    get_people,
    get_person_with_memberships,
)


def groups_of(*, email: str, now: datetime) -> frozenset[str]:
    """Return the ids of the groups that a person is in at ``now``, every group above included; none for unknown or disabled people. Only
    enabled groups count, and memberships of which a claim does."""
    return find_person_with_groups(email=email, now=now)[1]


def find_person_with_groups(
    *, email: str, without: Collection[str] = (), now: datetime
) -> tuple[Person | None, frozenset[str], frozenset[str]]:
    """Find a person, the groups that they are in, and those that they are directly in, of one moment: two strong requests for up to a
    hundred groups, one more when a group of theirs was moved. ``without``: claims that don't count."""
    person, memberships = held_by(email)
    if person is None or not person.is_enabled:
        return person, frozenset(), frozenset()
    if without:
        memberships = tuple(one.without(without) for one in memberships)
    groups = frozenset(groups_through(memberships, now=now))
    return person, groups, groups & {one.group_id for one in memberships if one.role_at(now)}


def find_person_with_ends(*, email: str, now: datetime) -> tuple[Person | None, dict[str, datetime | None]]:
    """As :func:`find_person_with_groups`, with when they stop being in each group (``None``: never)."""
    person, memberships = held_by(email)
    if person is None or not person.is_enabled:
        return person, {}
    return person, groups_through(memberships, now=now)


def groups_through(memberships: Collection[Membership], *, now: datetime) -> dict[str, datetime | None]:
    """The ids of the groups that these memberships put an enabled person into, every group above included, with their ends."""
    wanted = {above for one in memberships for above in (one.group_id, *path_ancestors(one.group_id))}
    groups = get_groups(wanted)
    moved_below = {above for one in memberships if one.group_id in groups for above in groups[one.group_id].ancestors} - wanted
    if moved_below:
        groups |= get_groups(moved_below)
    return counted_groups(memberships, groups=groups, now=now)


def roles_of(*, email: str, now: datetime) -> tuple[EffectiveRole, ...]:
    """Return what each of a person's memberships gives at ``now`` on its group and everything below, in order of path; on any group the
    highest counts. Two strong requests; nothing for unknown or disabled people."""
    person, memberships = held_by(email)
    if person is None or not person.is_enabled:
        return ()
    groups = get_groups(one.group_id for one in memberships)
    return effective_roles(memberships, groups=groups, now=now)


def role_on(*, email: str, group_id: str, now: datetime) -> GroupRole | None:
    """Return the highest role of a person on a group at ``now``, given in it or above; ``None`` also for a group that does not exist. Two
    strong requests."""
    right = rights_on(email=email, group_ids=[group_id], now=now).get(group_id)
    return right.role if right is not None else None


def rights_on(*, email: str, group_ids: Collection[str], now: datetime) -> dict[str, EffectiveRole]:
    """What :func:`role_on` says of each of the groups, with where it is given and when it ends; without those where it is none."""
    person, memberships = held_by(email)
    if person is None or not person.is_enabled or not memberships:
        return {}
    groups = get_groups({*(one.group_id for one in memberships), *filter(is_group_id, group_ids)})
    rights = {
        group_id: right_at(memberships, groups=groups, group=groups[group_id], now=now) for group_id in group_ids if group_id in groups
    }
    return {group_id: right for group_id, right in rights.items() if right is not None}


def people_in(*, groups: Collection[str], groups_only: Collection[str] = (), users: Collection[str] = (), now: datetime) -> Crowd:
    """Find the enabled people in ``groups`` and below, directly in ``groups_only``, and among ``users``, at ``now``. The right to approve
    stands on it: the index only finds candidates, all are read strongly; somebody new may be missing for a moment, nobody removed is
    here."""
    named = {*groups, *groups_only}
    asked = get_groups(filter(is_group_id, named))
    live = {group_id for group_id, group in asked.items() if group.is_enabled}
    memberships = _memberships_in(live.intersection(groups), live.intersection(groups_only))
    keys = {one.person for one in memberships if one.role_at(now)}
    keys.update(key for key in map(key_of, users) if key)
    return Crowd(people=_enabled(keys), missing_groups=tuple(sorted(named - live)))


def admins_of(*, group_id: str, now: datetime) -> Crowd:
    """Find the enabled people whose role on the group at ``now`` is admin, given in it or in one above. All strongly read."""
    group = get_group(group_id) if is_group_id(group_id) else None
    if group is None:
        return Crowd(people=(), missing_groups=(group_id,))
    above = [group, *get_groups(group.ancestors).values()]
    candidates = [(key, one.group_id) for one in above if one.is_enabled for key in one.admins]
    admins = {one.person for one in get_memberships(candidates) if one.role_at(now) is GroupRole.ADMIN}
    return Crowd(people=_enabled(admins))


def _memberships_in(live: Collection[str], alone: Collection[str]) -> tuple[Membership, ...]:
    """The memberships in the groups ``live`` (known to exist and to be enabled), in enabled groups below, and in ``alone``."""
    below = {one.group_id for one in _below(live).values() if one.is_enabled} if live else set()
    wanted = sorted({*below, *live, *alone})
    candidates = [(one.person, one.group_id) for group_id in wanted for one in every_member(group_id)]
    return get_memberships(candidates)


def _below(tops: Collection[str]) -> dict[str, Group]:
    candidates = {one.group_id for one in every_group() if not one.is_root and set(tops).intersection(one.ancestors)}
    return {group_id: one for group_id, one in get_groups(candidates).items() if set(tops).intersection(one.ancestors)}


def held_by(email: str) -> tuple[Person | None, tuple[Membership, ...]]:
    """Whoever has this address, in any spelling of its letters, with every membership; of one moment."""
    key = key_of(email)
    return get_person_with_memberships(key) if key else (None, ())


def _enabled(keys: Iterable[str]) -> tuple[Person, ...]:
    return tuple(person for person in get_people(keys) if person.is_enabled)
