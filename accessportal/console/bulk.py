"""One operation on many records: each record is its own unit; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accessportal.console.resource import Operation, Resource
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import PortalError


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the operation would do to one record: possible, or not and why. ``title`` is its key when it can't be read.

    ``mark`` proves at the button what was described here.
    """

    key: str
    title: str
    is_possible: bool
    words: str
    mark: str = ""


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


def _weigh(resource: Resource, operation: Operation, key: str, actor: Actor, now: datetime) -> Prospect:
    title = key
    try:
        record = resource.load(key, actor, now)
        title = resource.title(record)
        decision = operation.offered(record, actor, now)
    except PortalError as error:
        return Prospect(key, title, is_possible=False, words=error.message)
    if not decision.allowed:
        return Prospect(key, title, is_possible=False, words=decision.reason)
    return Prospect(key, title, is_possible=True, words=operation.will(record), mark=operation.mark_of(record))


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
