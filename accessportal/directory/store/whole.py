"""The whole table, for the comparison with Cognito that runs once a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pynamodb.exceptions import PynamoDBException

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import Group, Membership, Person
from accessportal.directory.store.conversion import to_group, to_membership, to_person
from accessportal.kernel.errors import Unavailable
from accessportal.store.base import unavailable
from accessportal.store.newer_versions import known
from accessportal.store.reading import BROKEN, RawItem, unreadable


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
        if item.pk == item.sk and models.is_person_pk(item.pk):
            self.people[models.person_in(item)] = to_person(item)
        elif item.pk == item.sk and models.is_group_pk(item.pk):
            self.groups[models.group_in(item)] = to_group(item)
        elif models.is_person_pk(item.pk) and models.is_group_pk(item.sk):
            self.memberships.setdefault(models.person_in(item), []).append(to_membership(item))
