"""What admins of the root can do to a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.urls import reverse

from accessportal.access_requests import queries as requests
from accessportal.directory import operations as directory
from accessportal.directory.states import Changed, Person, State
from accessportal.kernel.actors import Actor
from accessportal.portal.deeds import Data, Deed, Told
from accessportal.portal.directory_forms import DeedForm, RenamePersonForm

Run = Callable[[Person, Data, Actor, datetime], Changed[Any]]


def _set_state(state: State) -> Run:
    def run(person: Person, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
        return directory.set_person_state(email=person.email, state=state, actor=actor, now=now)

    return run


def _rename(person: Person, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.rename_person(email=person.email, name=data["name"], actor=actor, now=now)


def _delete(person: Person, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.delete_person(email=person.email, actor=actor, now=now)


def address_of(email: str) -> str:
    return reverse("person", args=[email])


def _about(doing: str, done: str) -> Callable[[Person, Data, Changed[Any]], Told]:
    def told(person: Person, data: Data, changed: Changed[Any]) -> Told:
        words = {"who": person.name}
        return Told(person.entity, doing.format(**words), done.format(**words), address_of(person.email))

    return told


def _deleted(person: Person, data: Data, changed: Changed[Any]) -> Told:
    doing = f"{person.name} ({person.email}) is being deleted, Cognito has not confirmed yet."
    return Told(person.entity, doing, f"Deleted {person.name} ({person.email}).", reverse("groups"))


PERSON_DEEDS: dict[str, Deed[Person]] = {
    deed.name: deed
    for deed in (
        Deed(
            name="rename",
            right="rename",
            label="Rename",
            question=lambda person, data: f"Rename {person.name}",
            explain=lambda person, data: f"The address {person.email} stays: it is what memberships and requests refer to.",
            button="Save",
            form=RenamePersonForm,
            run=_rename,
            told=_about("Saved. Cognito has not confirmed yet.", "Saved."),
            starts_with=lambda person, given: {"name": person.name},
        ),
        Deed(
            name="enable",
            right="enable",
            label="Enable",
            question=lambda person, data: f"Enable {person.name}?",
            explain=lambda person, data: "They can sign in again, and their memberships count from now on.",
            button="Enable",
            form=DeedForm,
            run=_set_state(State.ENABLED),
            told=_about("{who} is being enabled, Cognito has not confirmed yet.", "Enabled {who}."),
            fits=lambda person: not person.is_enabled and not person.is_deleting,
        ),
        Deed(
            name="disable",
            right="disable",
            label="Disable",
            question=lambda person, data: f"Disable {person.name}?",
            explain=lambda person, data: (
                "They are signed out at their next click, are in no group and may decide nothing until they are enabled again. "
                f"{requests.access_that_ends(subject_id=person.key)}"
            ),
            button="Disable",
            form=DeedForm,
            run=_set_state(State.DISABLED),
            told=_about("{who} is being disabled, Cognito has not confirmed yet.", "Disabled {who}."),
            fits=lambda person: person.is_enabled,
            is_destructive=True,
        ),
        Deed(
            name="delete",
            right="delete",
            label="Delete",
            question=lambda person, data: f"Delete {person.name}?",
            explain=lambda person, data: (
                f"{person.email} is gone from the directory and from Cognito, with every membership. Their history stays in the audit log. "
                f"{requests.access_that_ends(subject_id=person.key)}"
            ),
            button="Delete person",
            form=DeedForm,
            run=_delete,
            told=_deleted,
            is_destructive=True,
        ),
    )
}
