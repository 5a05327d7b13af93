"""People, their memberships and groups as one page or one decision sees them: each read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from accessportal.directory.policy.tree import path_ancestors
from accessportal.directory.policy.words import is_group_id, key_of
from accessportal.directory.states import Crowd, Group, GroupRole, Membership, Person
from accessportal.directory.store.reading import (
    every_group,
    get_groups,
    get_memberships_and_people,
    get_people,
    get_person_with_memberships,
    list_candidates,
)
from accessportal.kernel.pages import Unreadable
from accessportal.store.reading import side_by_side

K = TypeVar("K")
V = TypeVar("V")
_Pair = tuple[str, str]
_MOST_COUNTED_GROUPS = 6
_FIRST_BELOW = 4
_MOST_PAIRS = 400


@dataclass(frozen=True, slots=True)
class Named:
    """Whom a rule names: everybody in ``groups`` and below them, those directly in ``groups_only``, and ``users``; or the admins of the
    one group ``admins_of``, by a role in it or in one above."""

    groups: tuple[str, ...] = ()
    groups_only: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    admins_of: str = ""


class Book:
    """What it was asked for once it does not read again, so it serves one page or one decision and is never kept
    (docs/decisions/0064-what-a-web-request-remembers.md). Everything that a decision may stand on is strongly read.

    :raises Unavailable: from every method, when the store did not answer.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[Person | None, tuple[Membership, ...]]] = {}
        self._people: dict[str, Person | None] = {}
        self._groups: dict[str, Group | None] = {}
        self._memberships: dict[_Pair, Membership | None] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._tree: tuple[Group, ...] | None = None
        self._crowds: dict[tuple[Named, datetime, int], Crowd] = {}

    def held_by(self, email: str) -> tuple[Person | None, tuple[Membership, ...]]:
        """Whoever has this address, in any spelling of its letters, with every membership; of one moment."""
        key = key_of(email)
        if not key:
            return None, ()
        if key not in self._held:
            self._held[key] = get_person_with_memberships(key)
            self._people[key] = self._held[key][0]
        return self._held[key]

    def hold(self, emails: Iterable[str]) -> None:
        """Read what :meth:`held_by` tells of these people side by side, and the groups that they are in at once."""
        keys = sorted({key for key in map(key_of, emails) if key} - self._held.keys())
        found = side_by_side([partial(get_person_with_memberships, key) for key in keys])
        self._held.update(zip(keys, found, strict=True))
        self._people.update((key, person) for key, (person, _) in zip(keys, found, strict=True))
        self.groups(above for _, held in found for one in held for above in (one.group_id, *path_ancestors(one.group_id)))

    def people(self, emails: Iterable[str]) -> dict[str, Person]:
        """Those whom the directory knows, by folded address; one request for all who were not read yet."""
        keys = {key for key in map(key_of, emails) if key}
        return _once(self._people, keys, _people_by_key)

    def groups(self, group_ids: Iterable[str]) -> dict[str, Group]:
        """Those that exist, enabled or not, by id; one request for all that were not read yet."""
        return _once(self._groups, set(filter(is_group_id, group_ids)), get_groups)

    def crowd(self, named: Named, *, now: datetime) -> Crowd:
        """The enabled people of whom ``named`` is true at ``now``.

        It agrees with :func:`groups_of` and :func:`role_on`. Indexes only find candidates: somebody added a moment ago may be missing
        until they have caught up; nobody removed is ever here.
        """
        self.look_up([named])
        return self._gather(named, now, self._below([named]))

    def find_enough(self, named: Named, *, now: datetime, is_enough: Callable[[Sequence[Person]], bool]) -> Crowd:
        """Those of :meth:`crowd` who are in the groups themselves, and of the groups below as many as it takes to find ``is_enough``: all
        where they never are."""
        self.look_up_direct([named])
        looked: set[str] = set()
        while not is_enough((crowd := self._gather(named, now, looked)).people):
            rest = sorted(self._below([named]) - looked)
            if not rest:
                return crowd
            # Twice as many each time: few requests where the first serve, few turns where none does.
            looked.update(rest[: max(_FIRST_BELOW, len(looked))])
            self._look_up([named], looked)
        left = self._below([named]) - looked if looked else {one.group_id for one in self._enabled(named.groups) if one.child_count}
        return replace(crowd, is_whole=not left)

    def those_in(self, group_id: str, people: Collection[str], *, now: datetime) -> set[str]:
        """Which of these people are in the group or below it: the same as by :meth:`crowd`, without a list of everybody there."""
        group = Named(groups=(group_id,))
        below = self._below([group])
        self.groups({group_id, *below})
        places = self._places(group, below)
        if len(places) * len(people) > _MOST_PAIRS or places <= self._members.keys():
            return {person.key for person in self.crowd(group, now=now).people}.intersection(people)
        return {one.person for one in self._held_pairs({(key, place) for key in people for place in places}) if one.role_at(now)}

    def count_in(self, group_id: str, *, now: datetime) -> int | None:
        """How many people are in a group and in those below; ``None`` where those are too many groups to read for a page."""
        if len(self._below([Named(groups=(group_id,))])) >= _MOST_COUNTED_GROUPS:
            return None
        return len(self.crowd(Named(groups=(group_id,)), now=now).people)

    def _gather(self, named: Named, now: datetime, below: Collection[str]) -> Crowd:
        if (named, now, len(below)) not in self._crowds:
            self._crowds[named, now, len(below)] = self._gathered(named, now, below)
        return self._crowds[named, now, len(below)]

    def _gathered(self, named: Named, now: datetime, below: Collection[str]) -> Crowd:
        held = self._held_pairs(self._candidates(named, below))
        if named.admins_of:
            keys = {one.person for one in held if one.role_at(now) is GroupRole.ADMIN}
            missing = {named.admins_of} - self.groups([named.admins_of]).keys()
        else:
            keys = {one.person for one in held if one.role_at(now)} | _keys_of(named)
            asked = {*named.groups, *named.groups_only}
            missing = asked - {one.group_id for one in self._enabled(asked)}
        people = _once(self._people, sorted(keys), _people_by_key).values()
        return Crowd(tuple(person for person in people if person.is_enabled), tuple(sorted(missing)))

    def look_up(self, wanted: Collection[Named]) -> None:
        """Read what :meth:`crowd` needs to tell all of these, in the fewest requests."""
        self._look_up(wanted, self._below(wanted))

    def look_up_direct(self, wanted: Collection[Named], *, within: Collection[tuple[Named, str]] = ()) -> None:
        """Read what :meth:`find_enough` begins with, of all of these at once: nobody below the groups. ``within``: and whether those
        are in these groups (:meth:`those_in`)."""
        around = {group_id: Named(groups=(group_id,)) for _, group_id in within}
        below = self._below(around.values())
        self.groups({*around, *below, *(group_id for one in wanted for group_id in (*one.groups, *one.groups_only))})
        self._list_members_of(wanted, ())
        pairs = {(key, place) for one, group_id in within for key in self._keys_in(one) for place in self._places(around[group_id], below)}
        if len(pairs) > _MOST_PAIRS:
            self.look_up(around.values())
            pairs = set()
        self._read_candidates(wanted, (), pairs)

    def _look_up(self, wanted: Collection[Named], below: Collection[str]) -> None:
        self._list_members_of(wanted, below)
        self._read_candidates(wanted, below, set())

    def _list_members_of(self, wanted: Collection[Named], below: Collection[str]) -> None:
        tops = {group_id for one in wanted for group_id in one.groups}
        ruled = {one.admins_of for one in wanted if one.admins_of}
        above = {over for group_id in ruled for over in path_ancestors(group_id)}
        found = self.groups({*tops, *ruled, *below, *above, *(group_id for one in wanted for group_id in one.groups_only)})
        # A group that was moved stands elsewhere than its path says.
        self.groups(over for group_id in ruled if group_id in found for over in found[group_id].ancestors)
        self._list_members({place for one in wanted for place in self._places(one, below)})

    def _read_candidates(self, wanted: Collection[Named], below: Collection[str], further: set[_Pair]) -> None:
        pairs = {pair for one in wanted for pair in self._candidates(one, below)}
        self._read(pairs | further, {person for person, _ in pairs}.union(*map(_keys_of, wanted)))

    def _below(self, wanted: Iterable[Named]) -> set[str]:
        """The groups that stand below the groups named, by the index."""
        tops = {group_id for one in wanted for group_id in one.groups}
        if tops and self._tree is None:
            self._tree = tuple(every_group())
        return {one.group_id for one in self._tree or () if not tops.isdisjoint(one.ancestors)}

    def _list_members(self, places: set[str]) -> None:
        missing = sorted(places - self._members.keys())
        listed = side_by_side([partial(list_candidates, place) for place in missing])
        self._members.update(zip(missing, listed, strict=True))

    def _read(self, pairs: set[_Pair], keys: set[str]) -> None:
        pairs, keys = pairs - self._memberships.keys(), keys - self._people.keys()
        unreadable: list[Unreadable] = []
        memberships, people = get_memberships_and_people(pairs, keys, past=unreadable.append)
        # What can't be read stops those alone who need it: they ask for it again.
        self._memberships |= memberships if unreadable else {pair: memberships.get(pair) for pair in pairs}
        self._people |= people if unreadable else {key: people.get(key) for key in keys}

    def _places(self, named: Named, below: Collection[str]) -> set[str]:
        """The groups whose direct members are meant, with those of ``below`` that stand below."""
        tops = {one.group_id for one in self._enabled(named.groups)}
        under = {one.group_id for one in self._enabled(below) if not tops.isdisjoint(one.ancestors)}
        return {*tops, *under, *(one.group_id for one in self._enabled(named.groups_only))}

    def _held_pairs(self, pairs: set[_Pair]) -> Iterable[Membership]:
        return _once(self._memberships, pairs, lambda missing: get_memberships_and_people(missing, ())[0]).values()

    def _keys_in(self, named: Named) -> set[str]:
        """Who may be directly named."""
        return {person for person, _ in self._candidates(named, ())} | _keys_of(named)

    def _candidates(self, named: Named, below: Collection[str]) -> set[_Pair]:
        if not named.admins_of:
            return {(person, place) for place in self._places(named, below) for person in self._members[place]}
        group = self._groups.get(named.admins_of)
        above = self._enabled((group.group_id, *group.ancestors)) if group is not None else ()
        return {(person, one.group_id) for one in above for person in one.admins}

    def _enabled(self, group_ids: Iterable[str]) -> list[Group]:
        """Of the groups that were read already."""
        found = map(self._groups.get, group_ids)
        return [group for group in found if group is not None and group.is_enabled]


def _once(known: dict[K, V | None], wanted: Collection[K], read: Callable[[Collection[K]], Mapping[K, V]]) -> dict[K, V]:
    missing = [one for one in wanted if one not in known]
    if missing:
        found = read(missing)
        known.update((one, found.get(one)) for one in missing)
    return {one: value for one in wanted if (value := known[one]) is not None}


def _people_by_key(keys: Iterable[str]) -> dict[str, Person]:
    return {person.key: person for person in get_people(keys)}


def _keys_of(named: Named) -> set[str]:
    return {key for key in map(key_of, named.users) if key}
