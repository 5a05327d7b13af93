"""The people of the directory, and whom Cognito has not followed yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row
from accessportal.directory import queries
from accessportal.directory.states import Person
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
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
class Behind:
    """What the cells of one piece of mirror work need: ``url_name`` leads to the page of the person or group."""

    kind: str
    name: str
    url_name: str


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

    def load(self, key: str, actor: Actor, now: datetime) -> Person:
        self.right.require(actor)
        return queries.get_person_for(email=key, actor=actor, now=now)

    def title(self, record: Person) -> str:
        return record.name or record.email

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        return [_row(item) for item in items]


def _row(item: Person | MirrorWork) -> Row:
    if isinstance(item, Person):
        return Row(item.key, item)
    kind, _, name = item.entity.partition("#")
    return Row(name, item, Behind(kind, name, f"admin:console_{'people' if kind == 'person' else 'groups'}_detail"))
