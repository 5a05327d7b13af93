"""What admins of the root can do to a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.urls import reverse

from accessportal.access_requests import queries as requests
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed, Person, PersonVerb, State
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import Unavailable
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.forms import MAX_NAME, DeedForm, TextField, line

_NAMED = 5
_NOT_GIVEN_BACK = " That is always so, and enabling them later gives none of it back."


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


def _ends(person: Person) -> str:
    """What ends with the person, after a sentence; read before they go, and never in the way of it."""
    try:
        ending = requests.what_ends_with(subject_id=person.key)
    except Unavailable:
        return f" {requests.ACCESS_ENDS}"
    held, waits = map(_listed, (ending.active, ending.waiting))
    told = [f"Ends within a minute: {held}."] if held else []
    told += [f"Is cancelled: {waits}."] if waits else []
    return "".join(f" {one}" for one in (*told, *ending.unreadable))


def _listed(found: Sequence[AccessRequest]) -> str:
    titles = [requests.title_of(request=one) for one in found[:_NAMED]]
    return ", ".join(titles) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _enable(person: Person, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = operations.set_person_state(email=person.email, state=State.ENABLED, actor=actor, now=now)
    return _told(person, changed, f"{person.email} is enabled here.", f"{person.email} is enabled now.")


def _disable(person: Person, _data: Data, actor: Actor, now: datetime) -> Told:
    ends = _ends(person)
    changed = operations.set_person_state(email=person.email, state=State.DISABLED, actor=actor, now=now)
    return _told(person, changed, f"{person.email} is disabled here.{ends}", f"{person.email} is disabled now.{ends}")


def _rename(person: Person, data: Data, actor: Actor, now: datetime) -> Told:
    return _told(person, operations.rename_person(email=person.email, name=data["name"], actor=actor, now=now), "Saved.", "Saved.")


def _delete(person: Person, _data: Data, actor: Actor, now: datetime) -> Told:
    ends = _ends(person)
    changed = operations.delete_person(email=person.email, actor=actor, now=now)
    told = _told(person, changed, f"{person.email} is being deleted.{ends}", f"{person.email} was deleted.{ends}")
    return replace(told, url=reverse("groups"))


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
    may=partial(_may, PersonVerb.ENABLE),
    run=_enable,
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
        f"{requests.what_ends_with(subject_id=person.key).words}{_NOT_GIVEN_BACK}"
    ),
    may=partial(_may, PersonVerb.DISABLE),
    run=_disable,
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
        f"{person.email} is gone from the directory and from Cognito, with every membership. Their history stays in the audit log; "
        "operators can then erase name and address (administration pages, Former people). "
        f"{requests.what_ends_with(subject_id=person.key).words}"
    ),
    button="Delete person",
    may=partial(_may, PersonVerb.DELETE),
    run=_delete,
    is_destructive=True,
)
PERSON_DEEDS = {deed.name: deed for deed in (RENAME, ENABLE, DISABLE, DELETE)}
"""In the order in which a page shows them."""
