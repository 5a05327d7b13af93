"""Telling in a person's chain that they came in and went."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.audit.states import Draft
from accessportal.directory import store
from accessportal.directory.operations.shared import held_by, require_people_right, settled, told_person
from accessportal.directory.states import Person, PersonVerb
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict, NotAllowed


def record_sign_in(*, email: str, identity: str = "", method: str, actor: Actor, now: datetime) -> Person:
    """The person's history tells that they signed in, and by which ``method``.

    ``identity`` is who they are at their issuer. The first one is kept for life, and no other may come in at this address
    any more: an issuer may give a left address to somebody else.

    :raises NotFound: when nobody has this address.
    :raises NotAllowed: when the person is disabled or bound to another identity, or the actor is somebody else.
    """

    def attempt() -> Person:
        person, _ = held_by(email)
        _require_own(person, actor)
        if not person.is_enabled:
            raise NotAllowed(f"{person.email} is disabled in the directory.", code="person_disabled")
        if identity and person.identity and identity != person.identity:
            raise NotAllowed(
                f"{person.email} belongs to another account of your sign-in service than the one you used. Ask an admin.",
                code="identity_differs",
            )
        wanted = replace(person, signed_in_at=now, identity=person.identity or identity)
        issuer = identity.partition("#")[0]
        return _written(person, wanted, Draft("user.signed_in", person.key, {"issuer": issuer, "method": method}), actor, now)

    return settled(attempt)


def record_sign_out(*, email: str, reason: str = "", actor: Actor, now: datetime) -> Person:
    """The person's history tells that they signed out, and why if it was not by themselves.

    :raises NotFound: when nobody has this address.
    :raises NotAllowed: when the actor is somebody else.
    """

    def attempt() -> Person:
        person, _ = held_by(email)
        _require_own(person, actor)
        return _written(person, person, Draft("user.signed_out", person.key, {"reason": reason}), actor, now)

    return settled(attempt)


def forget_identity(*, email: str, actor: Actor, now: datetime) -> Person:
    """Whoever signs in next at this address is kept as its identity: for an address that rightly went to somebody else, and for
    an issuer that gave everybody new accounts.

    :raises NotAllowed: unless the actor is an admin of the root, or the portal itself.
    :raises NotFound: when nobody has this address.
    :raises Conflict: when no identity is kept.
    """

    def attempt() -> Person:
        require_people_right(PersonVerb.FORGET_IDENTITY, actor=actor, now=now)
        person, _ = held_by(email)
        if not person.identity:
            raise Conflict(f"No sign-in account is kept for {person.email}.", code="identity_not_kept", present=person)
        draft = Draft("user.identity_forgotten", person.key, {"issuer": person.identity.partition("#")[0]})
        return _written(person, replace(person, identity=""), draft, actor, now)

    return settled(attempt)


def _require_own(person: Person, actor: Actor) -> None:
    if not actor.is_system and actor.name != person.key:
        raise NotAllowed("Nobody signs in or out for somebody else.", code="not_oneself")


def _written(person: Person, wanted: Person, draft: Draft, actor: Actor, now: datetime) -> Person:
    changed, events = told_person(wanted, [draft], actor=actor, now=now)
    store.write_person(store.PersonChange(person, changed), events=events, is_mirrored=False, by=actor.name, at=now)
    return changed
