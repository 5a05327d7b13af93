"""The whole table, for the comparison with Cognito that runs once a day, and for the check against the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from pynamodb.exceptions import PynamoDBException

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import Group, Membership, Person, PersonHolding
from accessportal.directory.store.conversion import to_group, to_membership, to_person
from accessportal.directory.store.reading import get_person_with_memberships
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Unreadable
from accessportal.store.base import unavailable
from accessportal.store.newer_versions import known
from accessportal.store.reading import BROKEN, RawItem, scan_records, unreadable


@dataclass(frozen=True, slots=True)
class TableImage:
    """Everybody and everything that the table holds. Memberships are listed by the key of their person."""

    people: Mapping[str, Person] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    memberships: Mapping[str, list[Membership]] = field(default_factory=dict)


def read_table(*, past: Callable[[str, Unavailable], object] | None = None) -> TableImage:
    """Read every person, group and membership strongly. A scan: a membership that another program wrote is in no index. ``past`` is told of
    a person of whom an item can't be read; without it, and for groups, that is an error."""
    image, unread = _Image(), set[str]()
    try:
        for page in DirectoryItem.scan(consistent_read=True).page_iter:
            for raw in page["Items"]:
                try:
                    image.take(raw)
                except Unavailable as error:
                    pk = str(raw["pk"]["S"])
                    if past is None or not models.is_person_pk(pk):
                        raise
                    unread.add(person := models.person_in(DirectoryItem(pk, pk)))
                    past(person, error)
    except PynamoDBException as error:
        raise unavailable(error) from error
    people = {key: person for key, person in image.people.items() if key not in unread}
    return TableImage(people, image.groups, {key: held for key, held in image.memberships.items() if key not in unread})


def every_record(*, past: Callable[[Unreadable], object]) -> Iterator[PersonHolding | Group]:
    """Every person with their memberships, and every group, strongly read, as they lie beside each other; memberships of nobody, too."""
    found: Iterator[Person | Group | Membership] = scan_records(DirectoryItem, _record, past=past)
    for key, together in groupby(found, key=_whose):
        own = list(together)
        if isinstance(own[0], Group):
            yield own[0]
        else:
            person = next((one for one in own if isinstance(one, Person)), None)
            yield PersonHolding(key, person, tuple(one for one in own if isinstance(one, Membership)))


def find_holding(key: str) -> PersonHolding | None:
    """One of them, strongly read."""
    person, memberships = get_person_with_memberships(key)
    return PersonHolding(key, person, memberships) if person is not None or memberships else None


def _record(item: DirectoryItem) -> Person | Group | Membership | None:
    if item.pk == item.sk and models.is_person_pk(item.pk):
        return to_person(item)
    if item.pk == item.sk and models.is_group_pk(item.pk):
        return to_group(item)
    if models.is_person_pk(item.pk) and models.is_group_pk(item.sk):
        return to_membership(item)
    return None


def _whose(record: Person | Group | Membership) -> str:
    if isinstance(record, Membership):
        return record.person
    return record.key if isinstance(record, Person) else record.group_id


@dataclass(slots=True)
class _Image:
    people: dict[str, Person] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    memberships: dict[str, list[Membership]] = field(default_factory=dict)

    def take(self, raw: RawItem) -> None:
        try:
            self._keep(known(DirectoryItem.from_raw_data(dict(raw))))
        except BROKEN as error:
            raise unreadable(DirectoryItem, (raw["pk"]["S"], raw["sk"]["S"]), error) from error

    def _keep(self, item: DirectoryItem) -> None:
        match _record(item):
            case Person() as person:
                self.people[person.key] = person
            case Group() as group:
                self.groups[group.group_id] = group
            case Membership() as membership:
                self.memberships.setdefault(membership.person, []).append(membership)
