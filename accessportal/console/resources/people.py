"""The people of the directory, and whom Cognito has not followed yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.access_requests import queries as requests
from accessportal.console.people_holdings import PEOPLE_AT_ONCE, address_of
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row
from accessportal.directory import queries
from accessportal.directory.states import Person
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import InvalidRequest, NotFound
from accessportal.kernel.pages import Page, Unreadable
from accessportal.mirror import queries as mirror
from accessportal.mirror.states import MirrorWork
from accessportal.web.exporting import exported
from accessportal.web.person_deeds import DISABLE, ENABLE

_TALLY_UP_TO = 25

BEHIND = (
    Column("Who or what", "console/cells/mirror_entity.html", "col-who"),
    Column("Waits since", "console/cells/mirror_since.html", "col-time"),
    Column("What is in the way", "console/cells/mirror_trouble.html", "col-context"),
)


def _count_behind(ask: Ask) -> Count:
    page = mirror.page_of_pending(cursor=None, limit=_TALLY_UP_TO)
    return Count(len(page.items), is_more=page.next_cursor is not None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a person stands on the list; ``ask_url`` answers what they and the next ones are in and hold."""

    number: int
    ask_url: str


@dataclass(frozen=True, slots=True)
class Behind:
    """What the cells of one piece of mirror work need: ``url_name`` leads to the page of the person or group."""

    kind: str
    name: str
    url_name: str


def _with_access(ask: Ask) -> Page[Person]:
    """Whoever holds something, nearest end first: with several things perhaps on several pages."""
    page = requests.list_active(**ask.part_seen)
    unreadable: list[Unreadable] = []
    wanted = dict.fromkeys(one.subject_id for one in page.items if "@" in one.subject_id)
    known = queries.find_people(emails=wanted, past=unreadable.append)
    return Page(tuple(known[key] for key in wanted if key in known), page.next_cursor, (*page.unreadable, *unreadable))


def _in_group(ask: Ask) -> Page[Person]:
    try:
        page = queries.list_members(group_id=ask.parameter, book=ask.book.directory, **ask.part_seen)
    except NotFound as error:
        raise InvalidRequest(f"{error.message} Type a whole path like /engineering.", code=error.code, field="q") from error
    unreadable: list[Unreadable] = []
    known = queries.find_people(emails=[one.person for one in page.items], past=unreadable.append)
    return Page(tuple(known[one.person] for one in page.items if one.person in known), page.next_cursor, (*page.unreadable, *unreadable))


class People(Resource):
    name = "people"
    singular = "person"
    plural = "People"
    icon = "user-round"
    about = "Everybody in the directory: their groups and roles, why they have them, and whether Cognito knows."
    portal_page = "person"
    columns = (
        Column("Person", "console/cells/person_name.html", "col-who"),
        Column("State", "console/cells/person_state.html", "col-state"),
        Column("Directly in", "console/cells/person_groups.html", "col-context"),
        Column("Holds now", "console/cells/person_holds.html", "col-state"),
        Column("In the directory since", "console/cells/person_since.html", "col-time"),
    )
    file_columns = exported(("person", "key"), "email", "name", "state", "created_at", "signed_in_at", "is_deleting")
    patterns = (
        Pattern(
            name="all",
            label="People",
            fetch=lambda ask: queries.list_people(prefix=ask.parameter, **ask.part),
            parameter=Parameter("Address begins with", "alice", required=False),
            bulk=("disable", "enable"),
            empty_title="Nobody's address begins so",
            empty_hint="The search looks at the beginning of the address, not at names.",
        ),
        Pattern(
            name="disabled",
            label="Disabled",
            fetch=lambda ask: queries.list_disabled(**ask.part),
            goes_on=True,
            bulk=("enable",),
            empty_title="Nobody is disabled",
            empty_hint="Whoever an admin of the root disables stands here until they are enabled or deleted.",
        ),
        Pattern(
            name="access",
            label="With access",
            fetch=_with_access,
            bulk=("disable",),
            empty_title="Nobody holds anything by a request now",
            empty_hint="What is held for a group stands in the list of requests, under “Active”.",
        ),
        Pattern(
            name="group",
            label="In a group",
            fetch=_in_group,
            parameter=Parameter("The group that they are directly in", "/engineering", finds="groups"),
            bulk=("disable", "enable"),
            empty_title="Nobody is directly in this group",
            empty_hint="Whoever is in a group below it counts as in it for rules, and stands in the list of that group.",
        ),
        Pattern(
            name="behind",
            label="Behind in Cognito",
            fetch=lambda ask: mirror.page_of_pending(**ask.part),
            columns=BEHIND,
            file_columns=exported("entity", "since", "due_at", "attempts", "error"),
            tally=_count_behind,
            empty_title="Cognito has followed every change",
            empty_hint="A person or group appears here from a change until Cognito is proved to have followed it.",
        ),
    )
    deeds = (DISABLE, ENABLE)

    def read(self, key: str, actor: Actor, now: datetime) -> Person:
        return queries.get_person_for(email=key, actor=actor, now=now)

    def title(self, record: Person) -> str:
        return record.name or record.email

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        return [_row(number, item, items) for number, item in enumerate(items)]


def _row(number: int, item: Person | MirrorWork, items: Sequence[Any]) -> Row:
    if isinstance(item, Person):
        keys = [one.key for one in items[number : number + PEOPLE_AT_ONCE]] if number % PEOPLE_AT_ONCE == 0 else []
        return Row(item.key, item, Place(number, address_of(number, keys) if keys else ""))
    kind, _, name = item.entity.partition("#")
    return Row(name, item, Behind(kind, name, f"admin:console_{'people' if kind == 'person' else 'groups'}_detail"))
