"""Letting people in, telling of it, and Django's own user table: the part of a person that a session refers to."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError

from accessportal.audit import queries as audit_queries
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import Person
from accessportal.identity.claims import Proven
from accessportal.kernel.actors import fold_email, person, system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, PortalError, Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.store.transactions import ConditionFailed, transact

log = structlog.get_logger(__name__)

BY_ISSUER = "openid_connect"
BY_PASSWORD = "password"  # noqa: S105  # the name of a way to sign in
_UNKNOWN = "unknown"
# One event for the same refusal of the same person a minute: telling must not be a way to fill the table.
_TOLD_EVERY = timedelta(minutes=1)
# More than there are reasons: who changes from one to another each time is told once a minute of each.
_LOOKED_AT = 30
_ATTEMPTS = 3


def admit(*, proven: Proven, now: datetime) -> User:
    """Let in whom the issuer vouches for, tell it in their history, and return the session's user. A person is bound to their first
    identity and it to them, so that nobody comes in by an address that the issuer gave away. :raises NotAllowed: with the reason."""
    known = directory_queries.find_person(email=proven.email) or _first_time(proven, now)
    if not known.is_enabled:
        raise NotAllowed(
            f"{known.email} is disabled in the directory. Ask {settings.HELP_CONTACT} if that is a mistake.", code="person_disabled"
        )
    user = ensure_user(email=known.email, name=known.name)
    if not user.is_active:
        # Nothing of the portal does that: somebody wrote it into this database by hand.
        raise NotAllowed(
            f"The user {known.email} is switched off in the portal's database. Ask {settings.HELP_CONTACT}.", code="user_inactive"
        )
    directory.record_sign_in(email=known.key, identity=proven.identity, method=BY_ISSUER, actor=person(known.key), now=now)
    return user


def _first_time(proven: Proven, now: datetime) -> Person:
    other = directory_queries.find_owner(identity=proven.identity)
    if other is not None:
        raise NotAllowed(
            f"Your account of the sign-in service is known here as {other.email}, and one account is one person. "
            f"If you are called {proven.email} from now on, ask {settings.HELP_CONTACT}: an admin adds {proven.email} and disables "
            f"{other.email}.",
            code="account_taken",
        )
    if not settings.OIDC_CREATE_PEOPLE:
        raise NotAllowed(f"{proven.email} is not in the directory yet. Ask {settings.HELP_CONTACT} to add you.", code="person_unknown")
    try:
        directory.create_person(email=proven.email, name=proven.name or proven.email, actor=system("sign-in"), now=now)
    except Conflict as error:
        if error.code != "person_exists":
            raise
        # Two first sign-ins at once: the other one created them.
        log.info("identity.person_exists", email=fold_email(proven.email))
    except InvalidRequest as error:
        raise NotAllowed(f"The portal can't keep your address or name: {error.message}", code="person_unusable") from error
    created = directory_queries.find_person(email=proven.email)
    if created is None:
        raise Unavailable("The person who was just created can't be read.", code="person_lost")
    return created


def record_password_sign_in(*, email: str, now: datetime) -> None:
    """The sign-in with a password of the demo is told in the person's history."""
    directory.record_sign_in(email=email, method=BY_PASSWORD, actor=person(email), now=now)


def record_sign_out(*, email: str, reason: str = "", now: datetime) -> None:
    """Tell the sign-out in the person's history; with a ``reason`` (a code) it was the portal's doing. What can't be told is logged and
    keeps nobody signed in."""
    try:
        directory.record_sign_out(email=email, reason=reason, actor=system("sign-in") if reason else person(email), now=now)
    except PortalError:
        log.exception("identity.sign_out_not_told", email=email, reason=reason)


def record_refusal(*, email: str, reason: str, method: str, now: datetime) -> None:
    """Tell the refused sign-in once a minute, under ``sign_in#<address>``, or ``sign_in#unknown`` for an address that nobody has: whoever
    can make up addresses must not make up histories. The log has all."""
    log.warning("identity.sign_in_refused", email=fold_email(email), reason=reason, method=method)
    try:
        known = directory_queries.find_person(email=email) if email else None
        _tell_refusal(known.key if known else _UNKNOWN, reason=reason, method=method, now=now)
    except Unavailable:
        log.exception("identity.refusal_not_told", reason=reason)


def _tell_refusal(key: str, *, reason: str, method: str, now: datetime) -> None:
    entity = f"sign_in#{key}"
    draft = Draft("sign_in.refused", key, {"email": key, "reason": reason, "method": method})
    for _ in range(_ATTEMPTS):
        told = audit_queries.history(entity, limit=_LOOKED_AT).items
        if any(one.data.get("reason") == reason and is_recent(one.at, now=now, within=_TOLD_EVERY) for one in told):
            return
        newest = next(iter(told), None)
        sequence, prev_hash = (newest.sequence, newest.hash) if newest else (0, "")
        event = prepare_event(draft, entity=entity, sequence=sequence + 1, prev_hash=prev_hash, actor=system("sign-in"), now=now)
        try:
            transact([event.step])
        except ConditionFailed:
            continue
        return
    log.warning("identity.refusal_not_told", reason=reason)


def end_every_session() -> int:
    """Sign everybody out and return how many sessions there were."""
    try:
        ended, _ = Session.objects.all().delete()
    except DatabaseError as error:
        raise Unavailable(f"Django's database does not answer ({type(error).__name__}).", code="database_unavailable") from error
    return ended


def ensure_user(*, email: str, name: str) -> User:
    """Return Django's user for the person, with their present name; a new one has no password. Roles stay with the directory: ``is_staff``
    only lets the admin site be reached, whose pages ask the actor."""
    first, _, last = name.partition(" ")
    told = {"email": email.strip(), "first_name": first[:150], "last_name": last[:150]}
    user, is_new = get_user_model().objects.update_or_create(
        username=fold_email(email), defaults=told, create_defaults={**told, "is_active": True, "is_staff": True}
    )
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def ensure_demo_user(*, email: str, name: str, password: str) -> User:
    """Afterwards the person can sign in with ``password`` (where ``DEMO`` is on). Doing it again changes the password."""
    user = ensure_user(email=email, name=name)
    user.is_active = user.is_staff = True
    user.password = _hash_of(password)
    user.save()
    return user


@functools.lru_cache(maxsize=1)
def _hash_of(password: str) -> str:
    """One for everybody who has the demo's password: to make one takes most of a second."""
    return make_password(password)
