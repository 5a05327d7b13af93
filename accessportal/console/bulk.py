"""One deed on many records: each record is its own unit; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from accessportal.console.resource import Resource
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import PortalError
from accessportal.web.deeds import Data, Deed


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the deed would do to one record: possible, or not and why. ``mark`` proves at the button what was described here. ``record`` is
    ``None`` and ``url`` empty when it can't be read."""

    key: str
    title: str
    is_possible: bool
    words: str
    mark: str = ""
    record: Any = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    key: str
    title: str
    is_done: bool
    words: str
    url: str = ""


def weigh_many(*, resource: Resource, deed: Deed[Any], keys: Sequence[str], actor: Actor, now: datetime) -> list[Prospect]:
    """What would happen to each record, in the order given; nothing is changed."""
    return [_weigh(resource, deed, key, actor, now) for key in keys]


def carry_out_many(
    *, resource: Resource, deed: Deed[Any], marks: Mapping[str, str], data: Data, actor: Actor, now: datetime
) -> list[Outcome]:
    """Do it to each record and say what came of it, in the order given. ``marks`` are by key, "" where the form had none."""
    return [_carry_out(resource, deed, key, mark, data, actor, now) for key, mark in marks.items()]


def to_keep(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For a session, so that the page of the results can be loaded again."""
    return [asdict(outcome) for outcome in outcomes]


def kept(found: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    return [Outcome(**one) for one in found]


def _weigh(resource: Resource, deed: Deed[Any], key: str, actor: Actor, now: datetime) -> Prospect:
    title, url, record = key, "", None
    try:
        record = resource.load(key, actor, now)
        title, url = resource.title(record), resource.page_url(key)
        decision = deed.may(record, actor, now)
    except PortalError as error:
        return Prospect(key, title, is_possible=False, words=error.message, record=record, url=url)
    if not decision.allowed:
        return Prospect(key, title, is_possible=False, words=decision.reason, record=record, url=url)
    return Prospect(key, title, is_possible=True, words=deed.explain(record), mark=deed.mark_of(record), record=record, url=url)


def _carry_out(resource: Resource, deed: Deed[Any], key: str, mark: str, data: Data, actor: Actor, now: datetime) -> Outcome:
    title, url = key, ""
    try:
        record = resource.load(key, actor, now)
        title, url = resource.title(record), resource.page_url(key)
        deed.may(record, actor, now).require()
        described = deed.as_described(record, mark)
        if not described.allowed:
            return Outcome(key, title, is_done=False, words=described.reason, url=url)
        words = deed.run(record, data, actor, now).words
    except PortalError as error:
        return Outcome(key, title, is_done=False, words=error.message, url=url)
    return Outcome(key, title, is_done=True, words=words, url=url)
