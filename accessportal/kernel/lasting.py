"""The law of power for a time, said once and asked everywhere.

An effect without an end needs a right without an end; what is given with a right that ends, ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse

FOR_A_TIME = "right_for_a_time"
"""The code of the refusal."""


@dataclass(frozen=True, slots=True)
class Right:
    """What somebody is, in words that go on after “You are”, and until when; ``ends_at`` ``None``: for good."""

    words: str
    ends_at: datetime | None


def operators_right(actor: Actor) -> Right:
    """The right of an actor who is an operator, or the portal itself."""
    return Right("an operator", actor.operator_until)


@dataclass(frozen=True, slots=True)
class Ruling:
    """``ends_at`` is when the effect must end (``None``: it need not), should the decision allow it."""

    decision: Decision
    ends_at: datetime | None


def rule_on_effect(right: Right, *, ends_at: datetime | None = None, can_end: bool = False) -> Ruling:
    """Rule whether what is done with ``right`` may stay until ``ends_at`` (``None``: for good). ``can_end``: something is given and can end
    with the right. Other effects of a right that ends need an end, which may be later."""
    if right.ends_at is None:
        return Ruling(allow("the right has no end"), ends_at)
    if can_end:
        return Ruling(allow("it ends with the right"), right.ends_at if ends_at is None else min(ends_at, right.ends_at))
    if ends_at is not None:
        return Ruling(allow("it ends by itself"), ends_at)
    until = f"{right.ends_at:%Y-%m-%d %H:%M} UTC"
    words = f"You are {right.words} only until {until}, and this would stay for good. Ask somebody who is so without an end."
    return Ruling(refuse(words, code=FOR_A_TIME), None)
