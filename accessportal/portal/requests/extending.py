"""More of what is held, counted from its end: the steps that a button offers, each with the end that it leads to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import Actor
from accessportal.kernel.durations import parse_duration
from accessportal.portal.requests.asking import foresee, target_of


@dataclass(frozen=True, slots=True)
class Step:
    """``ends_at``: when it would end if it were approved now. ``is_refused``: no rule gives so much."""

    typed: str
    seconds: int
    ends_at: datetime
    is_refused: bool


def steps_of(held: AccessRequest, actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """The steps of the kind, what would come of the shortest, and ``latest_end_at`` where some of them lead beyond it."""
    kind = kind_named(held.kind)
    given = {**target_of(held), "extends": held.request_id, "ticket_id": held.ticket_id}
    shortest = seconds_for(kind.fields.lengths[0], held, book.now)
    foreseen = foresee(kind, given | {"duration": f"{shortest}s"}, actor, book)
    longest = foreseen["preview"].longest_by_any_rule_seconds if "preview" in foreseen else 0
    steps = [_step(typed, held, longest, book.now) for typed in kind.fields.lengths]
    told = {"steps": steps, "step_preview": foreseen.get("preview"), "step_headline": foreseen.get("headline", "")}
    latest = book.now + timedelta(seconds=longest)
    if latest > held.expires_at and any(step.is_refused for step in steps):
        told |= {"latest_end_at": latest, "longest_seconds": longest}
    return told


def seconds_for(step: str, held: AccessRequest, now: datetime) -> int:
    """How long a request of now lasts that ends by ``step`` after what is held."""
    return math.ceil((held.expires_at - now).total_seconds()) + parse_duration(step)


def _step(typed: str, held: AccessRequest, longest: int, now: datetime) -> Step:
    seconds = parse_duration(typed)
    return Step(typed, seconds, held.expires_at + timedelta(seconds=seconds), is_refused=seconds_for(typed, held, now) > longest)
