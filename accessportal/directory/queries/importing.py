"""What an import of many people checks and reads before it writes anything."""

from __future__ import annotations

from collections.abc import Callable, Collection

from accessportal.directory import policy, store
from accessportal.directory.queries.roles import held_by
from accessportal.directory.states import Membership, Person
from accessportal.kernel.pages import Unreadable


def clean_email(*, email: str) -> str:
    """The address as typed, without space around it. :raises InvalidRequest: when nobody can have it."""
    return policy.clean_email(email)


def find_people(*, emails: Collection[str], past: Callable[[Unreadable], object] | None = None) -> dict[str, Person]:
    """Those of ``emails`` whom the directory knows, by folded address; strongly read, a hundred a request. ``past`` as in
    :func:`every`.

    :raises Unavailable: when the store did not answer.
    """
    keys = {key for key in map(policy.key_of, emails) if key}
    return {person.key: person for person in store.get_people(keys, past=past)}


def memberships_of(*, email: str) -> tuple[Membership, ...]:
    """Every membership of a person, whether or not it counts now; strongly read, one request.

    :raises Unavailable: when the store did not answer.
    """
    return held_by(email)[1]
