"""Who is asking: from a signed-in Django user, or a name on a command line, to an :class:`Actor`."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from django.conf import settings

from accessportal.directory import queries as directory
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor, Role, fold_email, person
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import NotAllowed


class _Named(Protocol):
    def get_username(self) -> str: ...


def actor_for(user: _Named, now: datetime, *, identity: str = "", book: Book | None = None) -> Actor:
    """Return the actor behind a signed-in user, whose name is the e-mail address, as :func:`actor_named`."""
    return actor_named(email=user.get_username(), now=now, identity=identity, book=book)


def is_operator(*, email: str, since: datetime, now: datetime) -> bool:
    """Whether whoever had this address at ``since`` is an operator at ``now``: nobody is whom the directory does not know, has
    disabled, or knows only since they were made anew later."""
    known, groups = directory.find_person_with_ends(email=email, now=now)
    return known is not None and to_epoch(known.created_at) <= to_epoch(since) and settings.OPERATOR_GROUP in groups


def actor_named(*, email: str, now: datetime, identity: str = "", book: Book | None = None) -> Actor:
    """Return the actor with this address and the roles that the directory gives them now; a session keeps none. ``identity``: who signed in
    at the issuer, if one vouched. :raises NotAllowed: for somebody unknown or disabled, and when the address has another identity since."""
    known, groups = directory.find_person_with_ends(email=email, now=now, book=book)
    if known is None:
        raise NotAllowed(f"{fold_email(email)} is not in the directory. Ask your operator to add you.", code="person_unknown")
    if not known.is_enabled:
        raise NotAllowed(f"{known.email} is disabled in the directory. Ask your operator if that is a mistake.", code="person_disabled")
    if identity and identity != known.identity:
        raise NotAllowed("Who may sign in at your address has changed since you did. Sign in again.", code="identity_differs")
    by_group = {settings.OPERATOR_GROUP: Role.OPERATOR, settings.AUDITOR_GROUP: Role.AUDITOR}
    roles = frozenset(role for group, role in by_group.items() if group in groups)
    return person(known.key, roles=roles, operator_until=groups.get(settings.OPERATOR_GROUP))
