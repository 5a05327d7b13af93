"""One operation on many records: each record is its own unit; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from accessportal.console.resource import Operation, Resource
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import PortalError


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the operation would do to one record: possible, or not and why. ``title`` is its key when it can't be read.

    ``mark`` proves at the button what was described here. ``record`` is ``None`` when it can't be read.
    """

    key: str
    title: str
    is_possible: bool
    words: str
    mark: str = ""
    record: Any = None


@dataclass(frozen=True, slots=True)
class Outcome:
    key: str
    title: str
    is_done: bool
    words: str


def weigh_many(*, resource: Resource, operation: Operation, keys: Sequence[str], actor: Actor, now: datetime) -> list[Prospect]:
    """What would happen to each record, in the order given; nothing is changed."""
    return [_weigh(resource, operation, key, actor, now) for key in keys]


def carry_out_many(
    *, resource: Resource, operation: Operation, marks: Mapping[str, str], reason: str, actor: Actor, now: datetime
) -> list[Outcome]:
    """Do it to each record and say what came of it, in the order given. ``marks`` are by key, "" where the form had none."""
    return [_carry_out(resource, operation, key, mark, reason, actor, now) for key, mark in marks.items()]


def to_keep(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For a session, so that the page of the results can be loaded again."""
    return [asdict(outcome) for outcome in outcomes]


def kept(found: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    return [Outcome(**one) for one in found]


def _weigh(resource: Resource, operation: Operation, key: str, actor: Actor, now: datetime) -> Prospect:
    title, record = key, None
    try:
        record = resource.load(key, actor, now)
        title = resource.title(record)
        decision = operation.offered(record, actor, now)
    except PortalError as error:
        return Prospect(key, title, is_possible=False, words=error.message, record=record)
    if not decision.allowed:
        return Prospect(key, title, is_possible=False, words=decision.reason, record=record)
    return Prospect(key, title, is_possible=True, words=operation.will(record), mark=operation.mark_of(record), record=record)


def _carry_out(resource: Resource, operation: Operation, key: str, mark: str, reason: str, actor: Actor, now: datetime) -> Outcome:
    title = key
    try:
        record = resource.load(key, actor, now)
        title = resource.title(record)
        operation.require(record, actor, now)
        described = operation.as_described(record, mark)
        if not described.allowed:
            return Outcome(key, title, is_done=False, words=described.reason)
        words = operation.run(record, reason, actor, now)
    except PortalError as error:
        return Outcome(key, title, is_done=False, words=error.message)
    return Outcome(key, title, is_done=True, words=words)
