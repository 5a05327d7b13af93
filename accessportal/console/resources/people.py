"""The people of the directory: who they are, what they are in and why, and whether Cognito knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.access_requests import queries as requests
from accessportal.audit import queries as audit
from accessportal.console.resource import Ask, Column, Operation, Parameter, Pattern, Resource, Right, Row, Section
from accessportal.directory import operations, queries
from accessportal.directory.states import Person, PersonVerb, State
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.pages import Page
from accessportal.mirror import queries as mirror
from accessportal.mirror.states import MirrorWork

_TALLY_UP_TO = 25
_EVENTS = 20
_INHERITED_SHOWN = 100
# Refusals that tell of the person's state and not of the actor.
_STALE = frozenset({"person_state_unchanged", "person_deleting"})

BEHIND = (
    Column("Who or what", "console/cells/mirror_entity.html", "col-who"),
    Column("Waits since", "console/cells/mirror_since.html", "col-time"),
    Column("What is in the way", "console/cells/mirror_trouble.html", "col-context"),
)


def _by_prefix(ask: Ask) -> Page[Person]:
    return queries.list_people(prefix=ask.parameter, cursor=ask.cursor, limit=ask.limit)


def _behind(ask: Ask) -> Page[MirrorWork]:
    return mirror.page_of_pending(cursor=ask.cursor, limit=ask.limit)


def _count_behind(ask: Ask) -> Count:
    page = mirror.page_of_pending(cursor=None, limit=_TALLY_UP_TO)
    return Count(len(page.items), is_more=page.next_cursor is not None)


def _offered(verb: PersonVerb, person: Person, actor: Actor, now: datetime) -> Decision:
    """The domain's policy, after what the person's own state already rules out."""
    unchanged = {PersonVerb.ENABLE: person.is_enabled, PersonVerb.DISABLE: not person.is_enabled}
    if person.is_deleting and verb is not PersonVerb.DELETE:
        return refuse(f"{person.email} is being deleted.", code="person_deleting")
    if unchanged.get(verb, False):
        return refuse(f"{person.email} is {person.state.value} already.", code="person_state_unchanged")
    return queries.may_with_people(verb=verb, actor=actor, now=now)


def _is_for(verb: PersonVerb, actor: Actor, now: datetime) -> bool:
    return queries.may_with_people(verb=verb, actor=actor, now=now).allowed


def _set_state(state: State, person: Person, _reason: str, actor: Actor, now: datetime) -> str:
    changed = operations.set_person_state(email=person.key, state=state, actor=actor, now=now)
    return changed.mirror.told(done=f"{person.email} is {state.value} now.", pending=f"{person.email} is {state.value} here.")


def _delete(person: Person, _reason: str, actor: Actor, now: datetime) -> str:
    changed = operations.delete_person(email=person.key, actor=actor, now=now)
    return changed.mirror.told(done=f"{person.email} was deleted.", pending=f"{person.email} is being deleted.")


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
    right = Right.READERS
    headline_template = "console/people/headline.html"
    columns = (
        Column("Person", "console/cells/person_name.html", "col-who"),
        Column("State", "console/cells/person_state.html", "col-state"),
        Column("In the directory since", "console/cells/person_since.html", "col-time"),
    )
    patterns = (
        Pattern(
            name="all",
            label="People",
            fetch=_by_prefix,
            parameter=Parameter("Address begins with", "alice", required=False),
            bulk=("disable", "enable"),
            empty_title="Nobody's address begins so",
            empty_hint="The search looks at the beginning of the address, not at names.",
        ),
        Pattern(
            name="behind",
            label="Behind in Cognito",
            fetch=_behind,
            columns=BEHIND,
            tally=_count_behind,
            empty_title="Cognito has followed every change",
            empty_hint="A person or group appears here from a change until Cognito is proved to have followed it.",
        ),
    )
    sections = (
        Section("Directly in", "console/people/memberships.html"),
        Section("Roles from above", "console/people/inherited.html"),
        Section("What happened", "console/people/story.html"),
        Section("Facts", "console/people/facts.html", is_aside=True),
        Section("Cognito", "console/people/mirror.html", is_aside=True),
        Section("In the eyes of the rules", "console/people/groups.html", is_aside=True),
    )
    operations = (
        Operation(
            name="disable",
            label="Disable",
            offered=partial(_offered, PersonVerb.DISABLE),
            is_for=partial(_is_for, PersonVerb.DISABLE),
            stale_codes=_STALE,
            run=partial(_set_state, State.DISABLED),
            will=lambda person: (
                f"{person.email} is in no group and has no role from then on, and is signed out at the next request. "
                "Memberships are kept for the day when they are enabled again. "
                f"{requests.access_that_ends(subject_id=person.key)}"
            ),
            is_danger=True,
            is_bulk=True,
        ),
        Operation(
            name="enable",
            label="Enable",
            offered=partial(_offered, PersonVerb.ENABLE),
            is_for=partial(_is_for, PersonVerb.ENABLE),
            stale_codes=_STALE,
            run=partial(_set_state, State.ENABLED),
            will=lambda person: f"{person.email} can sign in again, with every membership that still stands.",
            is_bulk=True,
        ),
        Operation(
            name="delete",
            label="Delete",
            offered=partial(_offered, PersonVerb.DELETE),
            is_for=partial(_is_for, PersonVerb.DELETE),
            stale_codes=_STALE,
            run=_delete,
            will=lambda person: (
                f"Deletes {person.email} with all memberships, here and in Cognito. The history stays. "
                f"{requests.access_that_ends(subject_id=person.key)}"
            ),
            is_danger=True,
            ends_record=True,
        ),
    )

    def load(self, key: str, actor: Actor, now: datetime) -> Person:
        self.right.require(actor)
        return queries.get_person_for(email=key, actor=actor, now=now)

    def title(self, record: Person) -> str:
        return record.name or record.email

    def entity(self, record: Person) -> str:
        return record.entity

    def head(self, record: Person) -> tuple[int, str]:
        return record.version, record.audit_head

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        return [_row(item) for item in items]

    def details(self, record: Person, ask: Ask) -> dict[str, Any]:
        why = queries.explain_person(email=record.key, actor=ask.actor, now=ask.now)
        return {
            "why": why,
            "rule_groups": sorted(why.groups),
            "inherited": why.inherited[:_INHERITED_SHOWN],
            "more_inherited": max(len(why.inherited) - _INHERITED_SHOWN, 0),
            "work": mirror.find_pending(record.entity),
            "events": audit.history(record.entity, limit=_EVENTS).items,
            "breaks": audit.check_head(record.entity, version=record.version, audit_head=record.audit_head),
        }


def _row(item: Person | MirrorWork) -> Row:
    if isinstance(item, Person):
        return Row(item.key, item)
    kind, _, name = item.entity.partition("#")
    return Row(name, item, Behind(kind, name, f"admin:console_{'people' if kind == 'person' else 'groups'}_detail"))
