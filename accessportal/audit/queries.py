"""Reading the audit log."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from accessportal.audit import config, policy, store
from accessportal.audit.policy import may_erase
from accessportal.audit.states import AuditEvent, ChainBreak, Unpublished
from accessportal.audit.store import by_actor, every_entity, history, list_day
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pages import every
from accessportal.kernel.pseudonyms import pseudonyms_in, replaced_in
from accessportal.store.erasures import find_erasure

__all__ = [
    "UNPUBLISHED_COUNTED_TO",
    "body_of",
    "breaks_in",
    "by_actor",
    "chain_of",
    "check_chain",
    "check_head",
    "check_of",
    "count_unpublished",
    "end_of_chain",
    "events_between",
    "events_of_day",
    "every_chain",
    "every_entity",
    "find_breaks",
    "history",
    "is_as_written",
    "is_being_erased",
    "is_checked_by",
    "list_day",
    "mark_of",
    "may_erase",
    "name_outside",
    "nameless",
    "nameless_in",
    "oldest_at",
]

# More than this many is the same alarm; counting on would read for ever when it is worst.
UNPUBLISHED_COUNTED_TO = 200


def is_as_written(event: AuditEvent) -> bool:
    """Whether the event by itself is what the portal wrote, by the keys of now."""
    return not policy.flaw_of(event, config.current())


def breaks_in(events: Sequence[AuditEvent]) -> list[ChainBreak]:
    """Every break in a chain that was read; empty when it is whole."""
    return list(policy.find_breaks(events, config.current()))


def nameless_in(value: Any) -> Any:
    """As :func:`nameless`, of each text in the value."""
    return replaced_in(value, nameless)


def is_being_erased(entity: str) -> bool:
    """Whether the chain is named by a person and is moved to their pseudonym right now: a part of it may be here."""
    found = map(find_erasure, pseudonyms_in(nameless(entity)))
    return any(one is not None and one.is_under_way for one in found)


def body_of(event: AuditEvent) -> dict[str, Any]:
    """What the hash of ``event`` covers: what may leave the portal for good.

    :raises Conflict: when it is hashed with pseudonyms of a key that is not here.
    """
    try:
        return policy.body_of(event, config.current())
    except KeyError as error:
        words = f"{event.entity}, event {event.sequence} has pseudonyms that are not by PORTAL_PSEUDONYM_KEY. Set the key that it had."
        raise Conflict(words, code="pseudonym_key_unknown") from error


def name_outside(event: AuditEvent) -> str:
    """The entity's name as :func:`body_of` has it."""
    return nameless(event.entity) if event.pseudonym_id or event.seal else event.entity


def mark_of(text: str) -> str:
    """What tells that a text is still the same, and nothing of it; empty for an empty one, and without a key of pseudonyms."""
    pseudonyms = config.current().pseudonyms
    return pseudonyms.of_name(text) if pseudonyms is not None and text else ""


def chain_of(entity: str) -> tuple[AuditEvent, ...]:
    """Every event of ``entity``, oldest first; for somebody who was erased and came back also those under their pseudonym."""
    return tuple(_from_the_beginning(entity, list(every(lambda cursor: history(entity, cursor=cursor, limit=200, newest_first=False)))))


def check_of(value: Any) -> str:
    """What tells that a value is still the same, also when people in it are erased, and nothing else of it."""
    return policy.check_of(nameless_in(value))


def is_checked_by(check: str, value: Any) -> bool:
    """Whether the check is of this value; it may be from before there were pseudonyms."""
    return check in (policy.check_of(value), check_of(value))


def end_of_chain(entity: str) -> tuple[int, str]:
    """Sequence and hash of the last event of ``entity``, or under the pseudonym: what was deleted must not be started a second time."""
    newest = next((found for name in dict.fromkeys((entity, nameless(entity))) for found in history(name, limit=1).items), None)
    return (newest.sequence, newest.hash) if newest else (0, "")


def every_chain(*, segment: int, segments: int) -> Iterator[tuple[str, list[AuditEvent]]]:
    """As :func:`accessportal.audit.store.every_chain`, each from its beginning, as :func:`chain_of`."""
    for entity, events in store.every_chain(segment=segment, segments=segments):
        yield entity, _from_the_beginning(entity, events)


def _from_the_beginning(entity: str, events: list[AuditEvent]) -> list[AuditEvent]:
    name = nameless(entity)
    if name == entity or not events or events[0].sequence == 1:
        return events
    until = events[0].sequence - 1
    return [*every(lambda cursor: history(name, cursor=cursor, limit=200, newest_first=False, until=until)), *events]


def nameless(text: str) -> str:
    """The text with a pseudonym for each address in it; as it is where the installation has none."""
    pseudonyms = config.current().pseudonyms
    return pseudonyms.in_text(text) if pseudonyms else text


def events_of_day(day: date) -> Iterator[AuditEvent]:
    """Everything that happened on a UTC day, by time, entity (its name outside) and sequence, a page of each shard at a time. The index
    behind it may lag."""
    by_time = heapq.merge(*(store.events_of_shard.every(shard) for shard in store.shards_of_day(day)), key=lambda event: event.at)
    for _, at_once in itertools.groupby(by_time, key=lambda event: event.at):
        yield from sorted(at_once, key=lambda event: (name_outside(event), event.sequence))


def events_between(begin: datetime, end: datetime) -> Iterator[AuditEvent]:
    """Everything that happened from one moment to another, both included, by time. The index behind it may lag."""
    for number in range((end.date() - begin.date()).days + 1):
        shards = store.shards_of_day(begin.date() + timedelta(days=number))
        yield from heapq.merge(*(store.events_of_shard_between(shard, begin, end) for shard in shards), key=lambda event: event.at)


def oldest_at() -> datetime | None:
    """When the first event of all happened, of those that are as they were written. Reads the whole audit log."""
    events = (event for _, chain in every_chain(segment=0, segments=1) for event in chain)
    return min((event.at for event in events if is_as_written(event)), default=None)


def find_breaks(entity: str) -> list[ChainBreak]:
    """Every break in the chain of ``entity``; empty when the chain is whole."""
    return breaks_in(chain_of(entity))


def check_chain(entity: str, events: Sequence[AuditEvent], *, version: int, audit_head: str) -> list[ChainBreak]:
    """The breaks of a chain that was read, and whether it ends where the item says."""
    return policy.check_chain(entity, events, config.current(), version=version, audit_head=audit_head)


def check_head(entity: str, *, version: int, audit_head: str) -> list[ChainBreak]:
    """The breaks of ``entity``'s chain, and whether it ends where the item says (a cut-off tail is a break too)."""
    return check_chain(entity, chain_of(entity), version=version, audit_head=audit_head)


def count_unpublished(*, counted_to: int = UNPUBLISHED_COUNTED_TO) -> Unpublished:
    """How many events wait for the topic, counted to about ``counted_to``; one request a shard. The index behind it may lag."""
    shards = store.outbox_shards()
    pages = [store.unpublished_page(shard, cursor=None, limit=-(-counted_to // len(shards))) for shard in shards]
    oldest = min((event.at for page in pages for event in page.items), default=None)
    return Unpublished(count=sum(len(page.items) for page in pages), is_more=any(page.next_cursor for page in pages), oldest_at=oldest)
