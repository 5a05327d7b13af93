"""Telling in a person's chain that they came in and went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from accessportal.audit import queries as audit_queries
from accessportal.audit.operations import prepare_event
from accessportal.audit.queries import end_of_chain
from accessportal.audit.states import Draft
from accessportal.directory.operations.accounts import still_theirs
from accessportal.directory.operations.finding import held_by
from accessportal.directory.operations.rights import require_people_right
from accessportal.directory.operations.writing import settled, told_person
from accessportal.directory.policy.words import key_of
from accessportal.directory.queries.lists import find_owner
from accessportal.directory.states import Person, PersonVerb, person_entity
from accessportal.directory.store.accounts import forget_steps, get_kept_identity, nobody_has, write_accounts
from accessportal.directory.store.people import PersonChange, write_person
from accessportal.directory.store.reading import get_person
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.store.transactions import Insert, Step


def record_sign_in(*, email: str, identity: str = "", method: str, actor: Actor, now: datetime) -> Person:
    """Tell in the person's history that they signed in, and by which ``method``. Their first ``identity`` is kept for life: no other comes
    in at this address, because an issuer may give a left address to somebody else, and it comes in nowhere else."""

    def attempt() -> Person:
        person, _ = held_by(email)
        _require_own(person, actor)
        if not person.is_enabled:
            raise NotAllowed(f"{person.email} is disabled in the directory.", code="person_disabled")
        kept = person.identity or (get_kept_identity(person.key) if identity else "")
        if identity and kept and identity != kept:
            raise NotAllowed(
                f"{person.email} belongs to another account of your sign-in service than the one you used. Ask an admin.",
                code="identity_differs",
            )
        wanted = replace(person, signed_in_at=now, identity=person.identity or identity)
        try:
            accounts = still_theirs(wanted) if identity else []
        except Conflict as error:
            owner = find_owner(identity=identity)
            raise NotAllowed(_taken_by(owner, person) if owner else error.message, code=error.code) from error
        data = {"issuer": identity.partition("#")[0], "method": method}
        mark = audit_queries.mark_of(identity)
        draft = Draft("user.signed_in", person.key, data | ({"identity": mark} if mark else {}))
        return _written(person, wanted, draft, actor, now, accounts=accounts)

    return settled(attempt)


def record_sign_out(*, email: str, reason: str = "", actor: Actor, now: datetime) -> Person:
    """Tell in the person's history that they signed out, and why if it was not by themselves."""

    def attempt() -> Person:
        person, _ = held_by(email)
        _require_own(person, actor)
        return _written(person, person, Draft("user.signed_out", person.key, {"reason": reason}), actor, now)

    return settled(attempt)


def forget_identity(*, email: str, actor: Actor, now: datetime) -> Person | None:
    """Forget who comes in at this address, so that the next one is kept: for an address that rightly went to somebody else, and for an
    issuer that gave everybody new accounts. An address keeps its account also while nobody has it (then there is no record)."""

    def attempt() -> Person | None:
        require_people_right(PersonVerb.FORGET_IDENTITY, actor=actor, now=now)
        key = key_of(email) or ""
        person, kept = get_person(key), get_kept_identity(key)
        identity = person.identity if person is not None and person.identity else kept
        if not identity:
            if person is None:
                raise NotFound("Nobody in the directory has this address.", code="person_not_found")
            raise Conflict(f"No sign-in account is kept for {person.email}.", code="identity_not_kept", present=person)
        draft = Draft("user.identity_forgotten", key, {"issuer": identity.partition("#")[0]})
        accounts = forget_steps(identity, key)
        if person is not None:
            return _written(person, replace(person, identity=""), draft, actor, now, accounts=accounts)
        _write_about_the_gone(key, draft, accounts, actor, now)
        return None

    return settled(attempt)


def letting_go(*, key: str, actor: Actor, now: datetime) -> list[Step]:
    """The steps that hold while nobody has the address, after which it keeps no account of the sign-in service."""
    kept = get_kept_identity(key)
    if not kept:
        return [nobody_has(key)]
    draft = Draft("user.identity_forgotten", key, {"issuer": kept.partition("#")[0]})
    return [nobody_has(key), *forget_steps(kept, key), _next_event(key, draft, actor, now)]


def _taken_by(other: Person, wanted: Person) -> str:
    """An address is for life: who is renamed at the sign-in service is followed by an admin, who moves what the person may do."""
    return (
        f"The account of the sign-in service is known here as {other.email}, and one account is one person. Sign in as {other.email}. "
        f"If the person is called {wanted.email} from now on, an admin of / gives {wanted.email} the groups and disables {other.email}."
    )


def _require_own(person: Person, actor: Actor) -> None:
    if not actor.is_system and actor.name != person.key:
        raise NotAllowed("Nobody signs in or out for somebody else.", code="not_oneself")


def _written(person: Person, wanted: Person, draft: Draft, actor: Actor, now: datetime, *, accounts: Sequence[Step] = ()) -> Person:
    changed, events = told_person(wanted, [draft], actor=actor, now=now)
    change = PersonChange(person, changed)
    write_person(change, events=events, further=accounts, is_mirrored=False, by=actor.name, at=now)
    return changed


def _write_about_the_gone(key: str, draft: Draft, accounts: Sequence[Step], actor: Actor, now: datetime) -> None:
    write_accounts(accounts, events=[_next_event(key, draft, actor, now)])


def _next_event(key: str, draft: Draft, actor: Actor, now: datetime) -> Insert:
    """The chain goes on where it ended. Whoever makes the person anew meanwhile writes the same event of it: one fails."""
    entity = person_entity(key)
    sequence, head = end_of_chain(entity)
    return prepare_event(draft, entity=entity, sequence=sequence + 1, prev_hash=head, actor=actor, now=now).step
