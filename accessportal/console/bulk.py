"""One deed on many records: each record is its own unit; one that fails does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from accessportal.console.resource import Ask, Resource
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import PortalError
from accessportal.web.deeds import Data, Deed

AT_ONCE_SECONDS = 2.0
"""So long one web request works; then the page shows how far it is, and goes on. No proxy loses patience with it."""


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


@dataclass(slots=True)
class Batch:
    """What is being done to many, as a session keeps it: ``left`` are the marks by key, in order, ``typed`` what the form had. ``path``
    tells of which deed it is, ``back`` where it came from."""

    path: str
    back: str
    typed: dict[str, str]
    left: dict[str, str]
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def told(self) -> list[Outcome]:
        """First what was not done: that is left to somebody."""
        return sorted((Outcome(**one) for one in self.outcomes), key=lambda one: one.is_done)

    @property
    def total(self) -> int:
        return len(self.outcomes) + len(self.left)


def weigh_many(*, resource: Resource, deed: Deed[Any], keys: Sequence[str], ask: Ask) -> list[Prospect]:
    """What would happen to each record, in the order given; nothing is changed."""
    asked = deed.with_book(deed, ask.book)
    return [_weigh(resource, asked, key, record, ask) for key, record in resource.load_many(keys, ask).items()]


def carry_out(*, resource: Resource, deed: Deed[Any], batch: Batch, data: Data, actor: Actor, now: datetime, seconds: float) -> None:
    """Do it to at least one of what is left, and go on for so many seconds; what came of each is in the batch."""
    until = time.monotonic() + seconds
    for key, mark in list(batch.left.items()):
        batch.outcomes.append(asdict(_carry_out(resource, deed, key, mark, data, actor, now)))
        del batch.left[key]
        if time.monotonic() >= until:
            return


def _weigh(resource: Resource, deed: Deed[Any], key: str, record: Any, ask: Ask) -> Prospect:
    if isinstance(record, PortalError):
        return Prospect(key, key, is_possible=False, words=record.message)
    title, url = resource.title(record), resource.page_url(key)
    try:
        decision = deed.may(record, ask.actor, ask.now)
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
