"""Whoever is in the directory no more, and taking their address and name out of everything that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from accessportal.audit import queries as audit
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section
from accessportal.identity.former_people import Former, find_former, may_erase
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import Conflict, InvalidRequest, NotFound
from accessportal.kernel.pages import Page
from accessportal.kernel.ports import after_commit
from accessportal.observe import heartbeats
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.exporting import exported
from accessportal.web.forms import MAX_NAME, DeedForm, TextField, line

_LATEST = 20
_ORDERED = "It was ordered, and has not begun yet."


class AddressForm(DeedForm):
    address = TextField(limit=MAX_NAME, label="Type the address, to confirm", missing="Type the address of whom to erase.", widget=line())


def _erase(former: Former, data: Data, actor: Actor, now: datetime) -> Told:
    if fold_email(data["address"]) != former.name:
        raise InvalidRequest(f"That is not {former.name}. Nothing was done.", code="address_differs", field="address")
    heartbeats.tell_of(heartbeats.ERASING, former.pseudonym, _ORDERED, now=now)
    after_commit("erase_former", pseudonym=former.pseudonym, operator=actor.name)
    return Told(f"Ordered: {former.pseudonym} will stand in the place of {former.name}. Look here again in some minutes.")


ERASE: Deed[Former] = Deed(
    name="erase",
    label="Erase name and address",
    question=lambda former: f"Erase {former.name}?",
    explain=lambda former: (
        f"A pseudonym takes the place of {former.name} and of their name in everything that the portal keeps. "
        "What happened stays and still verifies; who it was, nobody can tell any more. "
        "Their sessions and their account of the sign-in service go. "
        "What people typed, such as reasons, stays word for word, but for the address. "
        "It can’t be undone. It is not done while anything of theirs is still open; the person’s page then says what."
    ),
    button="Erase",
    may=lambda former, actor, _now: may_erase(former, actor),
    run=_erase,
    form=AddressForm,
    is_destructive=True,
    stale_codes=frozenset({"person_erased"}),
)


def _look_up(ask: Ask) -> Page[Former]:
    try:
        found = find_former(ask.parameter)
    except Conflict as error:
        raise InvalidRequest(error.message, code=error.code, field="q") from error
    return Page((found,) if found is not None else ())


class FormerPeople(Resource):
    name = "former-people"
    singular = "former person"
    plural = "Former people"
    icon = "user-round-x"
    about = "Whoever is in the directory no more: what happened, and having their name and address erased."
    columns = (
        Column("Person", "console/former_people/name.html", "col-who"),
        Column("State", "console/former_people/cell_state.html", "col-state"),
        Column("Last event", "console/former_people/left.html", "col-time"),
    )
    file_columns = exported(
        ("person", "name"),
        "last_at",
        ("erasing_begun_at", lambda former: former.erasure and former.erasure.begun_at),
        ("erased_at", lambda former: former.erasure and former.erasure.ended_at),
    )
    headline_template = "console/former_people/headline.html"
    patterns = (
        Pattern(
            name="address",
            label="Former people",
            fetch=_look_up,
            parameter=Parameter("Whole address, or pseudonym", "alice@example.com"),
            empty_title="Nobody with this address was ever here",
            empty_hint="Give the whole address that they had in the directory. Whoever is still in it has a page under People.",
        ),
    )
    sections = (
        Section("What happened", "web/latest_events.html"),
        Section("Facts", "console/former_people/facts.html", is_aside=True),
    )
    deeds = (ERASE,)

    def read(self, key: str, actor: Actor, now: datetime) -> Former:
        found = find_former(key)
        if found is None:
            raise NotFound("Nobody with this address was ever here.", code="person_not_found")
        return found

    def head(self, record: Former) -> None:
        """No record says any more where the chain ends."""

    def rows(self, items: Sequence[Former], ask: Ask) -> list[Row]:
        return [Row(former.name, former) for former in items]

    def details(self, record: Former, ask: Ask) -> dict[str, Any]:
        beat = heartbeats.last_beat(heartbeats.ERASING)
        events = audit.chain_of(record.entity)
        return {
            "note": beat.detail.get(record.pseudonym, "") if beat is not None and record.erasure is None else "",
            "events": events[: -_LATEST - 1 : -1],
            "breaks": audit.breaks_in(events),
            "is_headless": True,
        }
