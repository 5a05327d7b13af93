"""The only user of the WaitingLine item class. Whatever moves a line changes its head, with the event, in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from accessportal.audit import operations as audit
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.pages import Unreadable, UnreadableItem
from accessportal.store.listing import Listing
from accessportal.store.reading import ItemKey, read_item
from accessportal.store.records import Records
from accessportal.store.transactions import ConditionFailed, Guard, Overtaken, Step, Upsert, transact, update_one
from accessportal.waiting import models
from accessportal.waiting.models import WaitingItem
from accessportal.waiting.states import Line, Place, Turn

log = structlog.get_logger(__name__)

_MOST_CLEANINGS = 21

_heads = Records(WaitingItem, Line, key=lambda line: models.head_key(line.line))
_places = Records(WaitingItem, Place, key=lambda place: models.place_key(place.line, place.number), unchanged=("claim", "number"))
# By its claim a place is found at once, and no claim has two.
_by_claim = Records(WaitingItem, Place, key=lambda place: models.claim_key(place.line, place.claim), unchanged=("claim", "number"))
_list = Listing("waiting.places", WaitingItem, _places.record, consistent=True)


def get_line(line: str) -> Line:
    """The line with how many wait, strongly read."""
    return _heads.get(*models.head_key(line)) or Line(line)


def find(line: str, claim: str) -> Place | None:
    """Strongly read."""
    return _by_claim.get(*models.claim_key(line, claim))


def find_many(claims: Iterable[tuple[str, str]], *, past: Callable[[Unreadable], object]) -> Collection[Place]:
    """As :func:`find`, of many claims with their lines, 100 to a request."""
    return _by_claim.get_many([models.claim_key(*one) for one in claims], past=past).values()


def item_of_place(line: str, claim: str) -> ItemKey:
    """The item that is there while the claim waits in the line, for who can read it with others."""
    return (WaitingItem, *models.claim_key(line, claim))


def places(line: str, *, before: int | None = None, past: Callable[[Unreadable], object] | None = None) -> Iterator[Place]:
    """All of them in order, strongly read; with ``before`` those with smaller numbers."""
    last = models.LAST if before is None else models.place_key(line, before - 1)[1]
    return _list.every(models.line_key(line), where=WaitingItem.sk.between(models.FIRST, last), past=past)


def nobody_waits(line: str) -> Guard:
    """The guard under which a thing may go to whoever comes by, or on the list of what is free; it holds for a line that nobody ever
    joined, and costs no read."""
    pk, sk = models.head_key(line)
    return Guard(WaitingItem, pk, WaitingItem.waiting.does_not_exist() | (WaitingItem.waiting == 0), sk, may_be_missing=True)


def has_not_moved(line: Line) -> Guard:
    """The guard that nobody has joined, left or been served since ``line`` was read."""
    pk, sk = models.head_key(line.line)
    if not line.version:
        return Guard(WaitingItem, pk, WaitingItem.pk.does_not_exist(), sk, may_be_missing=True)
    return Guard(WaitingItem, pk, _heads.is_unchanged(line), sk)


def join(line: Line, place: Place, *, draft: Draft, guards: Sequence[Guard], actor: Actor, now: datetime) -> Place:
    """Put the place into the line.

    :raises Overtaken: when the line has moved, or the claim has a place in it.
    :raises ConditionFailed: when one of ``guards`` does not hold."""
    after = replace(line, waiting=line.waiting + 1, next_number=place.number + 1)
    own = [*_moved(line, after, draft, actor, now), _places.insertion(place), _by_claim.insertion(place)]
    try:
        transact([*guards, *own])
    except ConditionFailed as error:
        if any(error.step is guard for guard in guards):
            raise
        raise Overtaken from error
    return _places.kept(place)


def leave(turn: Turn, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """:raises Overtaken: when the line has moved since it was read."""
    try:
        transact(without(turn, draft=draft, actor=actor, now=now))
    except ConditionFailed as error:
        raise Overtaken from error


def without(turn: Turn, *, draft: Draft, actor: Actor, now: datetime) -> list[Step]:
    """The steps with which a place goes, if the line has not moved since it was read."""
    after = replace(turn.line, waiting=turn.line.waiting - 1)
    return [*_moved(turn.line, after, draft, actor, now), _places.removal(turn.place), _by_claim.removal(turn.place)]


def _moved(before: Line, after: Line, draft: Draft, actor: Actor, now: datetime) -> list[Step]:
    moved, event = audit.told(after, draft, actor=actor, now=now)
    return [_heads.change(before, moved) if before.version else _heads.insertion(moved), event]


def cleanings(line: str) -> tuple[int, ...]:
    """How long each of the last cleanings took, in seconds. Of what can't be read it is not known, and the next ones are kept anew."""
    try:
        return read_item(WaitingItem, lambda item: tuple(map(int, json.loads(item.cleanings))), *models.cleanings_key(line)) or ()
    except UnreadableItem as error:
        log.warning("waiting.cleanings_unreadable", table=error.item.table, key=error.item.key, why=error.item.why)
        return ()


def keep_cleanings(line: str, seconds: Sequence[int]) -> None:
    """The last ones are kept. Of two who write at once one is lost: they say how long it takes of late, and no more."""
    kept = [*cleanings(line), *seconds][-_MOST_CLEANINGS:]
    pk, sk = models.cleanings_key(line)
    anyhow = WaitingItem.pk.exists() | WaitingItem.pk.does_not_exist()
    update_one(Upsert(WaitingItem, pk, [WaitingItem.cleanings.set(json.dumps(kept))], anyhow, range_key=sk))
