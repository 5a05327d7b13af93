"""One account of the sign-in service is one enabled person: whatever lets a person in with an account takes it for them first."""

from __future__ import annotations

from accessportal.directory.states import Person
from accessportal.directory.store.accounts import bind_steps, get_owner, still_owns
from accessportal.directory.store.reading import get_person
from accessportal.kernel.errors import Conflict
from accessportal.store.transactions import Step


def taken_for(person: Person) -> list[Step]:
    """What has to be written with a change after which ``person``, enabled, comes in with their account; nothing without one.

    The account must be nobody's, theirs already, or of somebody who is disabled, gone, or bound to another since. Whoever
    becomes enabled meanwhile takes it too, and so one of the two fails.

    :raises Conflict: when the account is that of another enabled person.
    """
    if not person.identity:
        return []
    owner = get_owner(person.identity)
    if owner is None:
        return bind_steps(person.identity, person.key, before=None)
    if owner.key != person.key:
        other = get_person(owner.key)
        if other is not None and other.is_enabled and other.identity == person.identity:
            # Whose it is, is for those who have the account: not every admin who makes people may know.
            text = f"The account of the sign-in service that is kept for {person.email} is another person's by now. "
            remedy = f"An admin of / lets another account come in as {person.email} (forget_identity), or disables the other person."
            raise Conflict(text + remedy, code="account_taken")
    return bind_steps(person.identity, person.key, before=owner)


def still_theirs(person: Person) -> list[Step]:
    """As :func:`taken_for`, for somebody who is enabled already: what is theirs is only looked at.

    :raises Conflict: as :func:`taken_for`.
    """
    owner = get_owner(person.identity) if person.identity else None
    return [still_owns(person.identity, person.key)] if owner is not None and owner.key == person.key else taken_for(person)
