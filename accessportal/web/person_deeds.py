"""What admins of the root can do to a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.urls import reverse

from accessportal.access_requests import queries as requests
from accessportal.access_requests.queries import ApproverBook
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed, Person, PersonVerb, State
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.forms import MAX_NAME, DeedForm, TextField, line


class RenamePersonForm(DeedForm):
    name = TextField(limit=MAX_NAME, label="Name", missing="Give the person a name.", widget=line())


def address_of(email: str) -> str:
    return reverse("person", args=[email])


def _may(verb: PersonVerb, person: Person, actor: Actor, now: datetime) -> Decision:
    """The domain's policy first: whoever may not is not told what could be done."""
    decision = queries.may_with_people(verb=verb, actor=actor, now=now)
    if not decision.allowed:
        return decision
    unchanged = {PersonVerb.ENABLE: person.is_enabled, PersonVerb.DISABLE: not person.is_enabled}
    if person.is_deleting and verb is not PersonVerb.DELETE:
        return refuse(f"{person.email} is being deleted.", code="person_deleting")
    if unchanged.get(verb, False):
        return refuse(f"{person.email} is {person.state.value} already.", code="person_state_unchanged")
    return decision


def _is_for(verb: PersonVerb, actor: Actor, book: ApproverBook) -> bool:
    return queries.may_with_people(verb=verb, actor=actor, now=book.now, book=book.directory).allowed


def _told(person: Person, changed: Changed[Any], doing: str, done: str) -> Told:
    pending = f"{doing} Cognito has not confirmed yet."
    return Told(done, address_of(person.email), pending, person.entity, mirror=changed.mirror)


def _set_state(state: State, person: Person, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = operations.set_person_state(email=person.email, state=state, actor=actor, now=now)
    return _told(person, changed, f"{person.email} is {state.value} here.", f"{person.email} is {state.value} now.")


def _rename(person: Person, data: Data, actor: Actor, now: datetime) -> Told:
    return _told(person, operations.rename_person(email=person.email, name=data["name"], actor=actor, now=now), "Saved.", "Saved.")


def _delete(person: Person, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = operations.delete_person(email=person.email, actor=actor, now=now)
    return replace(_told(person, changed, f"{person.email} is being deleted.", f"{person.email} was deleted."), url=reverse("groups"))


RENAME: Deed[Person] = Deed(
    name="rename",
    label="Rename",
    question=lambda person: f"Rename {person.name}",
    explain=lambda person: f"The address {person.email} stays: it is what memberships and requests refer to.",
    button="Save",
    form=RenamePersonForm,
    may=partial(_may, PersonVerb.RENAME),
    run=_rename,
    starts_with=lambda person, given: {"name": person.name},
)
ENABLE: Deed[Person] = Deed(
    name="enable",
    label="Enable",
    question=lambda person: f"Enable {person.name}?",
    explain=lambda person: "They can sign in again, and every membership that still stands counts from now on.",
    button="Enable",
    may=partial(_may, PersonVerb.ENABLE),
    run=partial(_set_state, State.ENABLED),
    fits=lambda person: not person.is_enabled and not person.is_deleting,
    is_for=partial(_is_for, PersonVerb.ENABLE),
    is_bulk=True,
)
DISABLE: Deed[Person] = Deed(
    name="disable",
    label="Disable",
    question=lambda person: f"Disable {person.name}?",
    explain=lambda person: (
        "They are signed out at their next click, are in no group and may decide nothing until they are enabled again. "
        f"{requests.access_that_ends(subject_id=person.key)}"
    ),
    button="Disable",
    may=partial(_may, PersonVerb.DISABLE),
    run=partial(_set_state, State.DISABLED),
    fits=lambda person: person.is_enabled,
    is_for=partial(_is_for, PersonVerb.DISABLE),
    is_destructive=True,
    is_bulk=True,
)
DELETE: Deed[Person] = Deed(
    name="delete",
    label="Delete",
    question=lambda person: f"Delete {person.name}?",
    explain=lambda person: (
        f"{person.email} is gone from the directory and from Cognito, with every membership. Their history stays in the audit log. "
        f"{requests.access_that_ends(subject_id=person.key)}"
    ),
    button="Delete person",
    may=partial(_may, PersonVerb.DELETE),
    run=_delete,
    is_destructive=True,
)
PERSON_DEEDS = {deed.name: deed for deed in (RENAME, ENABLE, DISABLE, DELETE)}
"""In the order in which a page shows them."""
