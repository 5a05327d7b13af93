"""Who may ask, how the tree of groups is told, and what the events of each kind of entity mean. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from accessportal.history.states import Interval, Progress, ThingKind
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse

PARTS = 64
"""In so many the log is cut where the history is made from nothing."""
MOST_LEVELS = 25
"""More groups than may stand above each other."""
TREE = "tree"
"""The reason of a group's place below another."""
SOON, HOUR, DAYS = "soon", "hour", "days"
LATE = {SOON: timedelta(0), HOUR: timedelta(hours=1), DAYS: timedelta(days=3)}
"""So long after its moment each event is looked for: what reaches the log, or its index, late is met by a later reading."""
MARGIN = timedelta(minutes=2)
"""What was read is read again as far back: an event has its time a moment before it is written, and the index lags."""


def may_ask(actor: Actor) -> Decision:
    if actor.reads_everything:
        return allow("auditors and operators read everything")
    return refuse("Only auditors and operators may ask who had access to something. Ask one of them.", code="history_readers_only")


def may_ask_about(actor: Actor, email: str) -> Decision:
    if actor.name == email:
        return allow("everybody may read what they had themselves")
    return may_ask(actor)


def may_rebuild(actor: Actor) -> Decision:
    if actor.is_operator:
        return allow("operators look after the tables")
    return refuse("Only operators may have the history made anew. Ask an operator.", code="operators_only")


def unfollowed_for(actor: Actor, progress: Progress) -> tuple[str, ...]:
    """What an answer may lack, in words for this actor: whoever reads only about themselves is not told whose events they are."""
    names = tuple(sorted({*progress.unfollowed, *progress.passed_over}))
    return names if actor.reads_everything else ("a person, group or thing",) if names else ()


def is_edge(interval: Interval) -> bool:
    """Whether it is the place of a group below another."""
    return interval.thing.kind is ThingKind.GROUP and interval.reason == TREE


def top_of(way: Sequence[Interval]) -> str:
    """The group at which a way through groups has come."""
    return way[-1].thing.name


def known_until(progress: Progress) -> datetime:
    """Up to when everything is surely told."""
    return progress.read_until[SOON] - MARGIN
