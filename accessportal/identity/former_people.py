"""Whoever is in the directory no more: looking them up, and what an operator orders about them on a page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.audit import queries as audit
from accessportal.directory import queries as directory
from accessportal.directory.states import person_entity
from accessportal.identity.erasing import erase_person
from accessportal.identity.pseudonyms import find_person_of
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.store.erasures import Erasure, find_erasure


@dataclass(frozen=True, slots=True)
class Former:
    """``name`` is their address, or the pseudonym while they are being erased and after that."""

    name: str
    pseudonym: str
    last_at: datetime
    erasure: Erasure | None = None

    @property
    def entity(self) -> str:
        return person_entity(self.name)


def find_former(text: str) -> Former | None:
    """Whoever had this address, or has this pseudonym and is being erased or was; ``None`` where nobody had. :raises Conflict: for somebody
    who is still here."""
    key = fold_email(text)
    if directory.find_person(email=key) is not None:
        raise Conflict(f"{key} is still in the directory. Delete the person first.", code="person_present")
    pseudonym = audit.nameless(key)
    erasure = find_erasure(pseudonym)
    name = key if erasure is None else pseudonym
    # While somebody is erased, their events move to the pseudonym.
    last = next((found for one in dict.fromkeys((pseudonym, key)) for found in audit.history(person_entity(one), limit=1).items), None)
    return None if last is None else Former(name, pseudonym, last.at, erasure)


def may_erase(former: Former, actor: Actor) -> Decision:
    """Whether it may be ordered, as far as a page can look: whether anything is open, the job finds."""
    decision = audit.may_erase(actor)
    if decision.allowed and former.erasure is not None:
        done = "is being erased" if former.erasure.is_under_way else "was erased"
        return refuse(f"{former.name} {done} already.", code="person_erased")
    if decision.allowed and former.name == former.pseudonym:
        return refuse("Nobody can be erased without PORTAL_PSEUDONYM_KEY. Set it in every process.", code="pseudonyms_off")
    return decision


def erase_former(*, pseudonym: str, actor: Actor, clock: Clock) -> str:
    """Erase whom an operator has ordered to. Why not, in words that name nobody; empty when it is done."""
    try:
        erase_person(email=find_person_of(pseudonym=pseudonym, actor=actor), actor=actor, clock=clock)
    except PortalError as error:
        return audit.nameless(error.message)
    return ""
