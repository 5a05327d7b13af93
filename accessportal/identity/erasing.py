"""Erasing a person who is gone: in what is kept a pseudonym takes the place of their address and name
(docs/decisions/0085-people-beside-the-hashes.md).

The record of it is written first, in the transaction that lets the account of the sign-in service go. Every step after that can be
repeated, and knows the person by the pseudonym alone: killed anywhere, the job goes on. The last walk is the proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError

from accessportal.access_requests import queries as requests
from accessportal.audit import operations as audit
from accessportal.audit import queries as audit_queries
from accessportal.authz import queries as authz
from accessportal.catalog import operations as catalog
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import person_entity
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.kernel.errors import Conflict, InvalidRequest, NotFound, Unavailable
from accessportal.kernel.pages import Unreadable
from accessportal.kernel.pseudonyms import may_stand_in
from accessportal.kernel.runs import Report, Run
from accessportal.leases import queries as leases
from accessportal.mirror import queries as mirror
from accessportal.store.erasures import Erasure, every_erasure, find_erasure
from accessportal.store.transactions import ConditionFailed

_MOST_WALKS = 6


@dataclass(frozen=True, slots=True)
class Erased:
    """What was done, or would be. ``items``: by table, how many named the person. ``typed``: where the name still stands in what somebody
    typed."""

    pseudonym: str
    is_dry: bool
    items: Mapping[str, int] = field(default_factory=dict)
    items_read: int = 0
    walks: int = 0
    typed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasingReport(Report):
    """``erased``: of how many who were begun with nothing is left."""

    erased: int = 0


class _Erasing(Run):
    """Nobody else finishes what is left of somebody, so every refusal is told."""

    passes = ()


def erase_person(*, email: str, is_dry: bool = False, actor: Actor, clock: Clock) -> Erased:
    """Erase somebody who is deleted, holds nothing and has nothing open. May be repeated at any time, also side by side.

    :raises NotAllowed: unless the actor is an operator.
    :raises NotFound: for an address that nobody had here.
    :raises Conflict: for somebody who is still here, or holds something, for an event that is not whole, and without pseudonyms.
    :raises Unavailable: when something could not be looked at, also an item that may name them; what was begun the job goes on with.
    """
    audit.require_erasing_right(actor)
    pseudonyms, key = audit.pseudonyms(), fold_email(email)
    if not may_stand_in(key):
        words = f"“{key[:60]}” can't be told apart from what stands around it in texts, so it can't be erased."
        raise InvalidRequest(words, code="address_unusual", field="email")
    pseudonym = pseudonyms.of(key)
    erasure = find_erasure(pseudonym)
    names = _names_of(key, pseudonym)
    if erasure is None or not erasure.is_under_way:
        _require_gone(key)
        if not is_dry:
            # What would stop the walk stops it before anything is done.
            audit.take_out(pseudonym, is_dry=True)
            now = clock.now()
            steps = directory.letting_go(key=key, actor=actor, now=now)
            try:
                erasure = audit.begin_erasure(pseudonym=pseudonym, further=steps, actor=actor, now=now)
            except ConditionFailed as error:
                raise Conflict(f"{key} was changed by somebody else right now. Try again.", code="erasure_overtaken") from error
    if is_dry:
        walked = audit.take_out(pseudonym, names=names, is_dry=True)
        items = {table: one.found for table, one in walked.tables.items() if one.found}
        return Erased(pseudonym, is_dry, items, walked.read, walks=1, typed=tuple(walked.typed))
    assert erasure is not None
    return _carry_out(erasure, names=names, actor=actor, clock=clock)


def go_on_erasing(*, actor: Actor, clock: Clock) -> ErasingReport:
    """Finish what was begun and whose worker died. Unavailable when that can't be listed."""
    run, erased = _Erasing(), list[Erased]()

    def finish(erasure: Erasure) -> None:
        erased.append(_carry_out(erasure, names=frozenset(), actor=actor, clock=clock))

    for erasure in every_erasure(past=run.pass_over):
        if erasure.is_under_way:
            run.unit(erasure.pseudonym, partial(finish, erasure))
    return ErasingReport(erased=len(erased), failures=run.failed)


def _carry_out(erasure: Erasure, *, names: frozenset[str], actor: Actor, clock: Clock) -> Erased:
    items: dict[str, int] = {}
    read = 0
    _forget_in_database(erasure.pseudonym)
    for number in range(1, _MOST_WALKS + 1):
        walked = audit.take_out(erasure.pseudonym, names=names, is_dry=False)
        read += walked.read
        for table, one in walked.tables.items():
            if one.written:
                items[table] = items.get(table, 0) + one.written
        if not walked.found:
            audit.end_erasure(erasure, actor=actor, now=clock.now())
            return Erased(erasure.pseudonym, False, items, read, number, tuple(walked.typed))  # noqa: FBT003
    words = f"Others keep writing about {erasure.pseudonym}. The job goes on with it."
    raise Conflict(words, code="erasure_contended")


def _names_of(key: str, pseudonym: str) -> frozenset[str]:
    """Those that the person's own chain tells, while it does."""
    events = audit_queries.chain_of(person_entity(key))
    if not events and find_erasure(pseudonym) is None:
        raise NotFound("Nobody with this address was ever here.", code="person_not_found")
    told = {str(event.data[name]) for event in events for name in ("name", "old_name") if name in event.data}
    return frozenset(name for name in told if not name.startswith("name-"))


def _require_gone(key: str) -> None:
    """:raises Conflict: naming what is open, and the remedy. :raises Unavailable: for an item that can't be read, and may be theirs."""

    def refuse(words: str, code: str) -> None:
        raise Conflict(words, code=code)

    def stop_at(one: Unreadable) -> None:
        raise one.error()

    entity = person_entity(key)
    if directory_queries.find_person(email=key) is not None:
        refuse(f"{key} is still in the directory. Delete the person first.", "person_present")
    if mirror.find_pending(entity) is not None or any(one.entity == entity for one in directory_queries.list_departures()):
        refuse(f"What {key} held is still being taken back. Wait a few minutes.", "person_departing")
    if found := requests.list_open(subject_id=key):
        open_now = counted(len(found), f"request for {key} is", f"requests for {key} are")
        refuse(f"{open_now} still open. End what is open first, and wait until that is proved.", "requests_open")
    if leases.leases_of(user=key):
        refuse(f"{key} still has an account. Give it back first.", "leases_open")
    outside = audit_queries.nameless
    for ledger in authz.LEDGERS:
        for record in ledger.every(past=stop_at):
            if any(outside(key) in outside(name) for name in record.names):
                refuse(f"{record.key} still stands. Revoke it, or wait until it is tidied away, first.", "records_open")
    # The lists of somebody don't show what has lost its name.
    for _ in itertools.chain(requests.every_request(past=stop_at), leases.every_row(past=stop_at)):
        pass


def _forget_in_database(pseudonym: str) -> None:
    """Sessions go, and so does Django's own user; what is kept for a while of others has no names in it."""
    outside = audit_queries.nameless
    try:
        people = [user for user in get_user_model().objects.all().iterator() if pseudonym in {outside(user.username), outside(user.email)}]
        user_ids = {str(user.pk) for user in people}
        for session in Session.objects.all().iterator():
            data = session.get_decoded()
            if str(data.get("_auth_user_id")) in user_ids or pseudonym in outside(str(data)):
                session.delete()
        LogEntry.objects.filter(user__in=people).delete()
        for user in people:
            user.delete()
    except DatabaseError as error:
        raise Unavailable(f"Django's database does not answer ({type(error).__name__}).", code="database_unavailable") from error
    catalog.forget_people(lambda address: outside(address) == pseudonym)
