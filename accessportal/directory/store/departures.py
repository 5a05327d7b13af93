"""Departures: one item for each person or group that may have lost something, written with the change itself.

An item goes only when everybody has looked at what the person or group holds, and its ``token`` is still the one that was there
before they looked: every change gives it a new one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator
from datetime import datetime

from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import Departure
from accessportal.directory.store.conversion import iso
from accessportal.directory.store.following import entity_of, item_pk_of
from accessportal.kernel.pages import Unreadable
from accessportal.store.listing import Listing
from accessportal.store.transactions import ConditionFailed, Remove, Upsert, transact


def departure_step(*, item_pk: str, now: datetime, lost: Collection[str] = ()) -> Upsert:
    """The step that tells of a departure. It belongs in the transaction of every change by which somebody may lose something."""
    pk, sk = models.departure_key(item_pk)
    actions: list[Action] = [
        DirectoryItem.si_key1.set(models.DEPARTURES),
        DirectoryItem.token.set(secrets.token_hex(8)),
        DirectoryItem.created_at.set(iso(now)),
    ]
    if lost:
        actions.append(DirectoryItem.lost.add(set(lost)))
    return Upsert(DirectoryItem, pk, actions, models.ALWAYS, sk)


def list_departures(*, past: Callable[[Unreadable], object] | None = None) -> Iterator[Departure]:
    """List the people and groups that may have lost something and were not looked at since, to their end; ``past`` as in :func:`every`. An
    index read: it may lag."""
    return Listing("directory.departures", DirectoryItem, _departure, DirectoryItem.kind_index).every(models.DEPARTURES, past=past)


def settle_departure(departure: Departure) -> bool:
    """Everything that hung on it was looked at. False when there was a further change meanwhile: then it stays."""
    pk, sk = models.departure_key(item_pk_of(departure.entity))
    try:
        transact([Remove(DirectoryItem, pk, DirectoryItem.token == departure.token, sk)])
    except ConditionFailed:
        return False
    return True


def _departure(item: DirectoryItem) -> Departure:
    return Departure(
        entity=entity_of(models.item_pk_in(item)),
        token=item.token,
        since=datetime.fromisoformat(item.created_at),
        lost=frozenset(item.lost or ()),
    )
