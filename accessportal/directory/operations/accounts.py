"""One account of the sign-in service is one enabled person: whatever lets a person in with an account takes it for them first."""

from __future__ import annotations

from accessportal.directory.states import Person
from accessportal.directory.store.accounts import bind_steps, get_owner, still_owns
from accessportal.directory.store.reading import get_person
from accessportal.kernel.errors import Conflict
from accessportal.store.transactions import Step


def taken_for(person: Person) -> list[Step]:
    """Make the steps by which an enabled ``person`` comes in with their account; none without an account. :raises Conflict: when it is
    another enabled person's. Two who become enabled at once both write it, so one of them fails."""
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
    """Make the steps of :func:`taken_for` for somebody who is enabled already: what is theirs is only looked at."""
    owner = get_owner(person.identity) if person.identity else None
    return [still_owns(person.identity, person.key)] if owner is not None and owner.key == person.key else taken_for(person)
