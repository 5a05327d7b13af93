"""The whole table, for the comparison with Cognito that runs once a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pynamodb.exceptions import PynamoDBException

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import Group, Membership, Person
from accessportal.directory.store.conversion import to_group, to_membership, to_person
from accessportal.kernel.errors import Unavailable
from accessportal.store.base import unavailable


@dataclass(frozen=True, slots=True)
class TableImage:
    """Everybody and everything that the table holds. Memberships are listed by the key of their person."""

    people: Mapping[str, Person] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    memberships: Mapping[str, list[Membership]] = field(default_factory=dict)


def read_table() -> TableImage:
    """Every person, group and membership, strongly read. A scan: a membership that another program wrote is in no index.

    :raises Unavailable: when the table could not be read to its end, or an item can't be read; it is named.
    """
    people: dict[str, Person] = {}
    groups: dict[str, Group] = {}
    memberships: dict[str, list[Membership]] = {}
    try:
        for item in DirectoryItem.scan(consistent_read=True):
            if item.pk == item.sk and models.is_person_pk(item.pk):
                people[models.person_in(item)] = to_person(item)
            elif item.pk == item.sk and models.is_group_pk(item.pk):
                groups[models.group_in(item)] = to_group(item)
            elif models.is_person_pk(item.pk) and models.is_group_pk(item.sk):
                memberships.setdefault(models.person_in(item), []).append(to_membership(item))
    except PynamoDBException as error:
        raise unavailable(error) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        text = f"An item of the directory can't be read ({error}). Somebody else has changed it; mend it by hand."
        raise Unavailable(text, code="item_unreadable") from error
    return TableImage(people, groups, memberships)
