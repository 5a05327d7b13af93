"""Joining a line, leaving it, and being served: each is one write that moves the line's head."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NoAnswer
from accessportal.store import transactions
from accessportal.store.transactions import Guard, Step
from accessportal.waiting import store
from accessportal.waiting.states import Place, Turn

# All that moves a line meets at its head: of one process, one at a time is faster than many who undo each other.
_one_at_a_time = threading.Lock()
_CONTENDED = NoAnswer("Too many others are joining or leaving the line right now. Try again.", code="line_contended")


def join(
    *,
    line: str,
    claim: str,
    wants: Mapping[str, Any],
    duration_seconds: int,
    lapses_at: datetime,
    guards: Sequence[Guard] = (),
    actor: Actor,
    now: datetime,
) -> Place:
    """Give ``claim`` the last place of the line, unless it has one in it: then that is returned. :raises ConditionFailed: when one of
    ``guards`` does not hold; nothing was written."""

    def attempt() -> Place:
        standing = store.find(line, claim)
        if standing is not None:
            return standing
        seen = store.get_line(line)
        place = Place(line, seen.next_number, claim, now, lapses_at, duration_seconds, wants)
        draft = Draft("line.joined", claim, {"place": place.number, "waiting": seen.waiting + 1})
        return store.join(seen, place, draft=draft, guards=guards, actor=actor, now=now)

    with _one_at_a_time:
        return transactions.until_written(attempt, contended=_CONTENDED)


def leave(*, line: str, claim: str, actor: Actor, now: datetime) -> Place | None:
    """Take ``claim`` out of the line; ``None``: it has no place in it. Coming back gives a new place."""

    def attempt() -> Place | None:
        place = store.find(line, claim)
        if place is None:
            return None
        turn = Turn(store.get_line(line), place)
        store.leave(turn, draft=_draft("line.left", turn), actor=actor, now=now)
        return place

    with _one_at_a_time:
        return transactions.until_written(attempt, contended=_CONTENDED)


def served(turn: Turn, *, thing: str, actor: Actor, now: datetime) -> list[Step]:
    """The steps with which a place goes because ``thing`` is handed over: they belong into the transaction that does so. They hold only
    while the line is as it was when the turn was found."""
    return store.without(turn, draft=_draft("line.served", turn, thing=thing), actor=actor, now=now)


def note_cleanings(*, line: str, seconds: Sequence[int]) -> None:
    """Keep how long some cleanings took, for what is expected of the next ones."""
    if seconds:
        store.keep_cleanings(line, seconds)


def _draft(action: str, turn: Turn, **data: str) -> Draft:
    return Draft(action, turn.place.claim, {"place": turn.place.number, "waiting": turn.line.waiting - 1, **data})
